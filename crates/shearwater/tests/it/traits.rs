//! `Send`, `Sync` and `Debug` of public types.

use std::fmt::Debug;
use std::hash::Hash;

use shearwater::engine::{BodyPolicy, FieldLines, HeaderRules, ResponseContent};
use shearwater::testing::{TestResponse, Tested};
use shearwater::{
    AcceptMode, App, Call, Control, Cors, DriverChoice, Error, Failure, Fast, Gone, LimitWarning, Limits,
    Line, ListenAddress, ListeningSocket, Method, Notice, Offloaded, Operator, Order, Request, Response,
    RouteError, RouteErrors, RouteMethod, Routes, RoutesService, Running, Server, SourceLocation,
    StackOptions, StartError, StartReport, Summary, TcpOptions, ThreadFailure, Timeouts, Totals, Verbosity,
    buffered, offload, post,
};

fn sent<T: Send + 'static>() {}
fn shared<T: Send + Sync + 'static>() {}
fn error<T: std::error::Error + Send + Sync + 'static>() {}
fn shown<T: Debug + ?Sized>() {}
fn compared<T: Clone + Eq + Debug + Send + Sync>() {}
fn key<T: Copy + Eq + Hash + Debug + Send + Sync>() {}

/// Checked by the compiler.
#[test]
fn settings_are_send_and_sync() {
    shared::<App>();
    shared::<Routes>();
    shared::<Server>();
    shared::<Fast>();
    shared::<Cors>();
    shared::<Control>();
    shared::<Operator>();
    shared::<HeaderRules>();
    shared::<FieldLines>();
    shared::<ListeningSocket>();
    sent::<Running>();
    compared::<Limits>();
    compared::<Timeouts>();
    compared::<TcpOptions>();
    compared::<StackOptions>();
    compared::<ListenAddress>();
    compared::<StartReport>();
    compared::<LimitWarning>();
    compared::<Totals>();
    compared::<Summary>();
    compared::<Notice>();
    compared::<SourceLocation>();
    compared::<TestResponse>();
    compared::<RouteMethod>();
    key::<ResponseContent>();
    key::<AcceptMode>();
    key::<DriverChoice>();
    key::<Method>();
    key::<Order>();
    key::<Verbosity>();
}

#[test]
fn errors_are_send_and_sync() {
    error::<Error>();
    error::<StartError>();
    error::<RouteError>();
    error::<RouteErrors>();
    error::<ThreadFailure>();
    compared::<Failure>();
    error::<Offloaded>();
    error::<Gone>();
}

#[test]
fn borrowed_types_implement_debug() {
    shown::<Request<'_>>();
    shown::<Response<'_>>();
    shown::<Call>();
    shown::<Line<'_>>();
    shown::<RoutesService>();
    shown::<BodyPolicy>();
    shown::<Tested>();
}

#[test]
fn offloaded_work_is_send() {
    fn awaited<F: Future<Output = Result<u8, Offloaded>> + Send + 'static>(_: &F) {}
    awaited(&offload(|| 0));
}

#[test]
fn debug_output_leaves_out_headers_and_body() {
    let app = App::new().route(
        "/echo",
        post(buffered(1024, |request: &Request, _: &[u8], response: &mut Response| {
            response.status(201).text("ready");
            let shown = format!("{request:?} {response:?}");
            response.text(&shown);
        })),
    );
    let shown = format!("{app:?}");
    assert!(shown.starts_with("App { routes: 1,"), "{shown}");
    let mut tested = Tested::new(app).expect("one route");
    let request = "POST /echo HTTP/1.1\r\nHost: test\r\nAuthorization: Basic c2VjcmV0\r\nContent-Length: 6\r\n\r\nsecret";
    let response = tested.ask(request);
    let shown = response.text();
    assert!(shown.contains("target: \"/echo\"") && shown.contains("body_len: 6"), "{shown}");
    assert!(shown.contains("status: 201, body_len: 5"), "{shown}");
    assert!(!shown.contains("secret") && !shown.contains("c2VjcmV0"), "{shown}");
}
