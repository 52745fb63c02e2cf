//! gRPC by HTTP/2 in clear: tonic's client, and services of tonic in a router.

use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request as HttpRequest, State};
use axum::routing::post;
use futures_util::{Stream, StreamExt, stream};
use testkit::TIMEOUT;
use tokio::sync::{Notify, mpsc};
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc as Client;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::server::Grpc;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;
use tower::service_fn;

use crate::serve::serve;

const MESSAGE_BYTES: usize = 1 << 20;

/// A protobuf message, written by hand: builds need no `protoc`.
#[derive(Clone, PartialEq, prost::Message)]
struct Message {
    #[prost(bytes = "vec", tag = "1")]
    content: Vec<u8>,
    #[prost(uint32, tag = "2")]
    number: u32,
}

impl Message {
    fn numbered(number: u32) -> Self {
        Self { number, ..Self::default() }
    }
}

type Codec = ProstCodec<Message, Message>;
type HttpResponse = tonic::codegen::http::Response<tonic::body::Body>;
type Messages = Pin<Box<dyn Stream<Item = Result<Message, Status>> + Send>>;

fn grpc() -> Grpc<Codec> {
    Grpc::new(Codec::default())
}

/// Sends back the message and the metadata; number 99 is an error.
async fn echo(request: HttpRequest) -> HttpResponse {
    let respond = |request: Request<Message>| async move {
        let metadata = request.metadata().clone();
        let message = request.into_inner();
        if message.number == 99 {
            let mut status = Status::with_details(Code::InvalidArgument, "99 % of é", vec![0, 255].into());
            status.metadata_mut().insert("x-reason", "tests".parse().unwrap());
            return Err(status);
        }
        let mut response = Response::new(message);
        for (name, sent) in [("x-own", "x-own"), ("x-te", "te")] {
            if let Some(value) = metadata.get(sent) {
                response.metadata_mut().insert(name, value.clone());
            }
        }
        if let Some(value) = metadata.get_bin("x-own-bin") {
            response.metadata_mut().insert_bin("x-own-bin", value.clone());
        }
        Ok(response)
    };
    grpc().unary(service_fn(respond), request).await
}

/// Sends as many messages as asked for, and then an error if there is content.
async fn count(request: HttpRequest) -> HttpResponse {
    let respond = |request: Request<Message>| async move {
        let Message { number, content } = request.into_inner();
        let end = (!content.is_empty()).then(|| Err(Status::data_loss("broken")));
        let messages = stream::iter((0..number).map(Message::numbered)).then(|message| async move {
            tokio::task::yield_now().await;
            Ok(message)
        });
        Ok(Response::new(Box::pin(messages.chain(stream::iter(end))) as Messages))
    };
    grpc().server_streaming(service_fn(respond), request).await
}

/// Adds up all messages.
async fn sum(request: HttpRequest) -> HttpResponse {
    let respond = |request: Request<Streaming<Message>>| async move {
        let (mut messages, mut sum) = (request.into_inner(), 0);
        while let Some(message) = messages.message().await? {
            sum += message.number;
        }
        Ok(Response::new(Message::numbered(sum)))
    };
    grpc().client_streaming(service_fn(respond), request).await
}

/// Sends back each message when it arrives.
async fn mirror(request: HttpRequest) -> HttpResponse {
    let respond = |request: Request<Streaming<Message>>| async move {
        Ok(Response::new(Box::pin(request.into_inner()) as Messages))
    };
    grpc().streaming(service_fn(respond), request).await
}

/// Notifies when it is dropped.
struct OnDrop(Arc<Notify>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// Never responds.
async fn wait(State(dropped): State<Arc<Notify>>, request: HttpRequest) -> HttpResponse {
    let respond = |_: Request<Message>| {
        let guard = OnDrop(Arc::clone(&dropped));
        async move {
            pending::<()>().await;
            drop(guard);
            Ok(Response::new(Message::default()))
        }
    };
    grpc().unary(service_fn(respond), request).await
}

/// Sends one message, and never an end.
async fn hang(State(dropped): State<Arc<Notify>>, request: HttpRequest) -> HttpResponse {
    let respond = |_: Request<Message>| {
        let guard = OnDrop(Arc::clone(&dropped));
        async move {
            let first = stream::once(async { Ok(Message::numbered(1)) });
            let rest = stream::once(async move {
                pending::<()>().await;
                drop(guard);
                Ok(Message::default())
            });
            Ok(Response::new(Box::pin(first.chain(rest)) as Messages))
        }
    };
    grpc().server_streaming(service_fn(respond), request).await
}

fn app(dropped: &Arc<Notify>) -> Router {
    Router::new()
        .route("/test.Echo/Echo", post(echo))
        .route("/test.Echo/Count", post(count))
        .route("/test.Echo/Sum", post(sum))
        .route("/test.Echo/Mirror", post(mirror))
        .route("/test.Echo/Wait", post(wait))
        .route("/test.Echo/Hang", post(hang))
        .with_state(Arc::clone(dropped))
}

/// A client of one connection.
struct Caller(Client<Channel>);

impl Caller {
    async fn unary(
        &mut self,
        path: &'static str,
        request: Request<Message>,
    ) -> Result<Response<Message>, Status> {
        self.0.ready().await.unwrap();
        self.0.unary(request, PathAndQuery::from_static(path), Codec::default()).await
    }

    async fn server_streaming(&mut self, path: &'static str, message: Message) -> Streaming<Message> {
        self.0.ready().await.unwrap();
        let request = Request::new(message);
        let sent = self.0.server_streaming(request, PathAndQuery::from_static(path), Codec::default());
        sent.await.unwrap().into_inner()
    }
}

/// Calls the services by each function of the bridge.
fn calls<F: Future<Output = ()>>(test: impl Fn(Caller, Arc<Notify>) -> F) {
    let dropped = Arc::new(Notify::new());
    for server in serve(|| app(&dropped)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let channel = Channel::from_shared(format!("http://{}", server.addr)).unwrap();
            let channel = channel.connect().await.unwrap();
            let called = test(Caller(Client::new(channel)), Arc::clone(&dropped));
            tokio::time::timeout(TIMEOUT, called).await.unwrap();
        });
        drop(runtime);
        server.shutdown();
    }
}

#[test]
fn unary_calls_keep_messages_and_metadata() {
    calls(|mut caller, _| async move {
        let content: Vec<u8> = (0..MESSAGE_BYTES).map(|at| u8::try_from(at % 251).unwrap()).collect();
        for content in [Vec::new(), b"short".to_vec(), content] {
            let mut request = Request::new(Message { content, number: 7 });
            let sent = request.get_ref().clone();
            request.metadata_mut().insert("x-own", "text".parse().unwrap());
            request
                .metadata_mut()
                .insert_bin("x-own-bin", tonic::metadata::MetadataValue::from_bytes(&[0, 255]));
            let response = caller.unary("/test.Echo/Echo", request).await.unwrap();
            assert_eq!(response.metadata().get("x-own").unwrap(), "text");
            let binary = response.metadata().get_bin("x-own-bin").unwrap();
            assert_eq!(binary.to_bytes().unwrap().as_ref(), [0, 255]);
            assert_eq!(response.metadata().get("x-te").unwrap(), "trailers");
            assert!(response.into_inner() == sent, "another message");
        }
    });
}

#[test]
fn errors_have_their_status_and_metadata() {
    calls(|mut caller, _| async move {
        let status = caller.unary("/test.Echo/Echo", Request::new(Message::numbered(99))).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::InvalidArgument, "99 % of é"));
        assert_eq!(status.details(), [0, 255]);
        assert_eq!(status.metadata().get("x-reason").unwrap(), "tests");
        // After messages, the status is in trailers.
        let message = Message { number: 2, content: vec![1] };
        let mut messages = caller.server_streaming("/test.Echo/Count", message).await;
        for number in 0..2 {
            assert_eq!(messages.message().await.unwrap(), Some(Message::numbered(number)));
        }
        let status = messages.message().await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::DataLoss, "broken"));
        let status = caller.unary("/test.Echo/Unknown", Request::new(Message::default())).await.unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented);
    });
}

#[test]
fn streams_of_messages_go_both_ways() {
    calls(|mut caller, _| async move {
        let mut messages = caller.server_streaming("/test.Echo/Count", Message::numbered(1000)).await;
        for number in 0..1000 {
            assert_eq!(messages.message().await.unwrap(), Some(Message::numbered(number)));
        }
        assert_eq!(messages.message().await.unwrap(), None);
        assert!(messages.trailers().await.unwrap().is_some());

        caller.0.ready().await.unwrap();
        let sent = Request::new(stream::iter((0..1000).map(Message::numbered)));
        let path = PathAndQuery::from_static("/test.Echo/Sum");
        let sum = caller.0.client_streaming(sent, path, Codec::default()).await.unwrap();
        assert_eq!(sum.into_inner(), Message::numbered(499_500));

        caller.0.ready().await.unwrap();
        let (sender, receiver) = mpsc::channel(1);
        let sent = Request::new(ReceiverStream::new(receiver));
        let path = PathAndQuery::from_static("/test.Echo/Mirror");
        let mut received = caller.0.streaming(sent, path, Codec::default()).await.unwrap().into_inner();
        for number in 0..100 {
            sender.send(Message::numbered(number)).await.unwrap();
            assert_eq!(received.message().await.unwrap(), Some(Message::numbered(number)));
        }
        drop(sender);
        assert_eq!(received.message().await.unwrap(), None);
    });
}

#[test]
fn deadlines_and_cancelled_calls_drop_their_services() {
    calls(|mut caller, dropped| async move {
        let mut request = Request::new(Message::default());
        request.set_timeout(Duration::from_millis(50));
        let status = caller.unary("/test.Echo/Wait", request).await.unwrap_err();
        assert!(matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled), "{status:?}");
        dropped.notified().await;

        let call = caller.unary("/test.Echo/Wait", Request::new(Message::default()));
        assert!(tokio::time::timeout(Duration::from_millis(50), call).await.is_err());
        dropped.notified().await;

        let mut messages = caller.server_streaming("/test.Echo/Hang", Message::default()).await;
        assert_eq!(messages.message().await.unwrap(), Some(Message::numbered(1)));
        drop(messages);
        dropped.notified().await;

        let response = caller.unary("/test.Echo/Echo", Request::new(Message::numbered(1))).await.unwrap();
        assert_eq!(response.into_inner().number, 1);
    });
}

#[test]
fn many_calls_share_a_connection() {
    const CALLS: u32 = 500;
    calls(|caller, _| async move {
        let calls = (0..CALLS).map(|number| {
            let mut caller = Caller(caller.0.clone());
            async move {
                let request = Request::new(Message { number: number + 100, content: vec![1; 5000] });
                caller.unary("/test.Echo/Echo", request).await.unwrap().into_inner().number
            }
        });
        let numbers = futures_util::future::join_all(calls).await;
        assert!(numbers.into_iter().eq(100..CALLS + 100));
    });
}
