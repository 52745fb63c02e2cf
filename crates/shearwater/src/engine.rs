//! The lower-level interface: for services that respond without routes, such as file servers and the bridge to tower.
//!
//! An [`App`](crate::App) needs none of this. A [`Service`](crate::Service) sees the parsed request line and headers as
//! a [`Head`], says by a [`BodyPolicy`] how it takes the request's body, and may respond with bytes that it has encoded
//! or shared before ([`Prebuilt`], [`Item`]).

pub use crate::handlers::OffloadPool;
pub use crate::predecessor::handed_state;
pub use crate::service_manager::claim_inherited_sockets;
pub use shearwater_engine::http1::{
    Expectation, Field, Framing, Head, KnownField, ResponseContent, Target, Trailers, Version, is_protocol,
    is_same_protocol, may_be_trailer, media_type, visible,
};
pub use shearwater_engine::io::control_socket;
pub use shearwater_engine::io::fs::written;
pub use shearwater_engine::io::os::{
    DescriptorLimit, descriptor_limits, forbid_core_dumps, give_back_heap, lower_thread_priority,
};
pub use shearwater_engine::io::signals::{
    Watch as SourceWatch, set_for_program as set_signals_for_program, watch as watch_source,
};
pub use shearwater_engine::io::{AcceptError, FileIdentity, FileSlice, Item, Shared, SharedFile};
pub use shearwater_engine::limits::EXCHANGE_TEXT_BYTES_MAX;
pub use shearwater_engine::{
    Around, BodyPolicy, Call, ConnectionGuard, ConnectionId, Context, End, FieldLines, GuardsPassed,
    HeaderRules, Host, HostedWorker, NextRun, On, Pieces, Prebuilt, Request, Wanted, WorkerPosition,
    raise_descriptor_limit,
};
