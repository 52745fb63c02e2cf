//! `Send`, `Sync` and `Debug` of public types.

use std::error::Error;
use std::fmt::Debug;

use axum::Router;
use shearwater_tower::{Body, BodyError, Listen, Running, Serve};

fn sent<T: Debug + Send + 'static>() {}
fn shared<T: Debug + Send + Sync + 'static>() {}

/// Checked by the compiler.
#[test]
fn bodies_and_servers_are_send() {
    shared::<Body>();
    shared::<BodyError>();
    shared::<Listen>();
    sent::<Serve<Router>>();
    sent::<Running>();
    sent::<<Serve<Router> as IntoFuture>::Output>();
}

#[test]
fn serve_can_be_awaited_by_any_task() {
    fn spawned<F: IntoFuture<IntoFuture: Send + 'static>>(_: &F) {}
    let serve = shearwater_tower::bind("127.0.0.1:0", Router::new());
    spawned(&serve);
    let shown = format!("{serve:?}");
    assert!(shown.starts_with("Serve { server: Ok("), "{shown}");
}

#[test]
fn body_error_has_a_complete_text() {
    let text = "the request ended before its body was read";
    assert_eq!(BodyError::Over.to_string(), text);
    assert!(BodyError::Over.source().is_none());
}
