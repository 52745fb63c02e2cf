//! Other people's types, on the surface of a crate in every way there is, and off it.

use super::allowed::Change;
use super::clean::Sources;
use super::planted::{Planted, planted};

/// It may use `mio` and `rustix`, inside.
const IO: &str = "crates/io/src/lib.rs";
const KINDS: &str = "crates/io/src/kinds.rs";
const TOWER: &str = "crates/tower/src/lib.rs";
const TABLE: &str = "xtask/src/tidy/rules/foreign_types.rs";

const fn on_surface(plant: fn(&mut Sources)) -> Planted {
    planted("foreign-types", IO, plant)
}

pub(super) const PLANTED: &[Planted] = &[
    on_surface(|s| s.append(IO, "pub fn f(t: mio::Token) {}\n")),
    on_surface(|s| s.append(IO, "pub fn f() -> impl Iterator<Item = mio::Token> {}\n")),
    on_surface(|s| s.append(IO, "pub fn f<T>(t: &T)\nwhere\n    T: mio::event::Source,\n{\n}\n")),
    on_surface(|s| s.append(IO, "pub fn f(t: &[Option<(u8, fn(::mio::Token))>]) {}\n")),
    on_surface(|s| s.append(IO, "use mio::Token as Mark;\n\npub struct S {\n    pub t: Option<Mark>,\n}\n")),
    on_surface(|s| s.append(IO, "use mio::{self as m, Poll};\n\npub struct S(pub m::Token);\n")),
    on_surface(|s| s.append(IO, "pub enum E {\n    A { t: mio::Token },\n}\n")),
    on_surface(|s| s.append(IO, "#[derive(Debug, mio::Made)]\npub struct S;\n")),
    on_surface(|s| s.append(IO, "pub trait T: mio::event::Source {}\n")),
    on_surface(|s| s.append(IO, "pub trait T {\n    fn f(&self) -> Box<dyn mio::event::Source>;\n}\n")),
    on_surface(|s| s.append(IO, "pub const C: Option<mio::Token> = None;\n")),
    on_surface(|s| s.append(IO, "pub use mio::Token;\n")),
    on_surface(|s| s.append(IO, "pub extern crate mio;\n")),
    on_surface(|s| s.append(IO, "use mio::*;\n")),
    on_surface(|s| {
        s.append(
            IO,
            "pub struct S;\n\nimpl S {\n    pub fn f(&self) -> mio::Token {\n        g()\n    }\n}\n",
        );
    }),
    on_surface(|s| s.append(IO, "pub struct S;\n\nimpl mio::event::Source for S {}\n")),
    on_surface(|s| s.append(IO, "pub struct S;\n\nimpl From<rustix::io::Errno> for S {}\n")),
    on_surface(|s| s.append(IO, "pub trait T {}\n\nimpl<M> T for M where M: mio::event::Source {}\n")),
    on_surface(|s| s.append(IO, "pub struct S;\n\nimpl Iterator for S {\n    type Item = mio::Token;\n}\n")),
    on_surface(|s| s.append(IO, "type Inner = Box<mio::Token>;\n\npub fn f() -> Inner {}\n")),
    on_surface(|s| s.append(IO, "pub mod inside {\n    pub fn f(t: mio::Token) {}\n}\n")),
    on_surface(|s| {
        s.put(KINDS, "//! Kinds of things.\n\npub(crate) use mio::Token as Kind;\n");
        s.append(IO, "mod kinds;\n\npub fn f(kind: crate::kinds::Kind) {}\n");
    }),
    on_surface(|s| {
        s.append(IO, "macro_rules! make {\n    ($t:ty) => {\n        pub struct S(pub $t);\n    };\n}\nmake!(mio::Token);\n");
    }),
    planted("foreign-types", TABLE, |s| {
        s.put(TOWER, "//! Services of others.\n\n#![forbid(unsafe_code)]\n");
    }),
];

/// What is allowed and how it looks.
pub(super) const ALLOWED: &[(&str, Change)] = &[
    ("other people's types inside of a crate", |s| {
        s.append(IO, "use mio::Token as Mark;\n\npub struct S {\n    t: Mark,\n}\n\nfn f(t: Mark) {}\n\n");
        s.append(IO, "pub(crate) fn g() -> mio::Poll {\n    mio::Poll::new()\n}\n\n");
        s.append(IO, "impl S {\n    pub fn h(&self) -> usize {\n        mio::Token::size(self.t)\n    }\n\n");
        s.append(IO, "    fn i(&self) -> mio::Token {\n        self.t\n    }\n}\n");
    }),
    ("other people's types at what nobody sees", |s| {
        s.append(IO, "struct S;\n\nimpl S {\n    pub fn f(&self) -> mio::Token {}\n}\n\nimpl mio::event::Source for S {}\n");
        s.append(IO, "pub struct P;\n\ntrait Inner {}\n\nimpl Inner for mio::Token {}\n");
        s.append(IO, "thread_local! {\n    static T: Option<mio::Token> = const { None };\n}\n");
    }),
    ("other people's types in tests", |s| {
        s.append(IO, "#[cfg(test)]\nmod tests {\n    pub fn f(t: mio::Token) {}\n}\n");
    }),
    ("our own of the same name", |s| {
        s.put(KINDS, "//! Kinds of things.\n\npub struct Token;\n\npub mod mio {\n    pub struct Poll;\n}\n");
        s.append(IO, "mod kinds;\n\nuse kinds::{Token, mio};\n\npub fn f(t: Token, p: mio::Poll) {}\n");
        s.append(
            "crates/engine/src/lib.rs",
            "pub fn f(t: shearwater_io::Token, d: &std::time::Duration) {}\n",
        );
    }),
    ("the types in the table, where it has them", |s| {
        s.append(
            "crates/tower/Cargo.toml",
            "axum = \"0.8\"\nbytes = \"1\"\nhttp = \"1\"\nhttp-body = \"1\"\ntokio = \"1\"\n",
        );
        s.put(TOWER, "//! Services of others.\n\n#![forbid(unsafe_code)]\n\n");
        s.append(TOWER, "pub trait T<B: http_body::Body<Data = D>, D: bytes::Buf>:\n");
        s.append(TOWER, "    tower_service::Service<http::Request<B>, Response = http::Response<B>>\n{\n");
        s.append(TOWER, "    fn f(&self) -> (http_body::Frame<bytes::Bytes>, http_body::SizeHint);\n}\n\n");
        s.append(TOWER, "pub fn f(t: tokio::net::TcpListener, u: tokio::net::UnixListener) {}\n");
        s.append(TOWER, "pub fn g(r: axum::extract::Request, m: axum::routing::IntoMakeService<R>) {}\n");
        let with_info = "axum::extract::connect_info::IntoMakeServiceWithConnectInfo<R, C>";
        s.append(TOWER, &format!("pub fn h(m: {with_info}) {{}}\n"));
    }),
];
