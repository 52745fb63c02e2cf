//! Mistakes in routes, all reported at startup with their places.

use std::ops::ControlFlow;

use shearwater::{App, Cors, Error, Fast, Method, Request, Response, RouteError, Server};

fn response(_: &Request, _: &mut Response) {}

/// Returns the only mistake of an app, without places, whose lines other tests check.
#[track_caller]
fn mistake(define: impl FnOnce(&mut App)) -> String {
    let mut app = App::new();
    define(&mut app);
    let Err(errors) = app.build() else { panic!("nothing is wrong") };
    assert_eq!(errors.all().len(), 1, "{errors}");
    match &errors.all()[0] {
        RouteError::Conflict { given, with } => format!("{} = {}", given.what(), with.what()),
        RouteError::Unreachable { given, by } => format!("{} < {}", given.what(), by.what()),
        RouteError::Refused { given, why } => format!("{}: {why}", given.what()),
        other => panic!("{other}"),
    }
}

#[test]
fn what_responses_the_same_requests_is_named_with_its_other() {
    type Define = fn(&mut App);
    let both = |one: Define, other: Define| {
        mistake(|app| {
            one(app);
            other(app);
        })
    };
    let get = |app: &mut App| {
        app.get("/a", response);
    };
    assert_eq!(
        both(get, |app| {
            app.get("/a", response);
        }),
        "GET /a = GET /a"
    );
    assert_eq!(
        both(get, |app| {
            app.route(Method::Get, "/a", response);
        }),
        "GET /a = GET /a"
    );
    let fast = |app: &mut App| {
        app.fast("/a", Fast::text("a"));
    };
    assert_eq!(both(get, fast), "the fast route /a = GET /a");
    assert_eq!(both(fast, get), "the fast route /a = GET /a");
    assert_eq!(both(fast, fast), "the fast route /a = the fast route /a");
    let pattern = |app: &mut App| {
        app.get("/a/{x}", response);
    };
    assert_eq!(
        both(pattern, |app| {
            app.get("/a/{x}", response);
        }),
        "GET /a/{x} = GET /a/{x}"
    );
    assert_eq!(
        both(pattern, |app| {
            app.get("/a/{y}", response);
        }),
        "GET /a/{y} = GET /a/{x}"
    );
    assert_eq!(
        both(pattern, |app| {
            app.post("/a/{y}", response);
        }),
        "POST /a/{y} = GET /a/{x}"
    );
    assert_eq!(
        both(pattern, |app| {
            app.get("/a/{*x}", response);
        }),
        "GET /a/{*x} = GET /a/{x}"
    );
    let fallback = |app: &mut App| {
        app.fallback(response);
    };
    assert_eq!(both(fallback, fallback), "the fallback of / = the fallback of /");
    let state = |app: &mut App| {
        app.state(1u8);
    };
    assert_eq!(both(state, state), "the state of type u8 = the state of type u8");
    let local = |app: &mut App| {
        app.local(|_| 1u8);
    };
    assert_eq!(both(local, local), "the local state of type u8 = the local state of type u8");
}

#[test]
fn what_is_never_reached_is_named_with_what_responses_in_its_place() {
    let hidden = mistake(|app| {
        app.fallback(response);
        app.get("/{*rest}", response);
    });
    assert_eq!(hidden, "the fallback of / < GET /{*rest}");
    let hidden = mistake(|app| {
        app.scope("/a", |app| {
            app.fallback(response);
        });
        app.get("/{x}/{*rest}", response);
    });
    assert_eq!(hidden, "the fallback of /a < GET /{x}/{*rest}");
}

#[test]
fn what_no_request_has_is_refused_with_the_reason() {
    for (path, why) in [
        ("a", "a path must begin with a slash"),
        ("", "a path must begin with a slash"),
        ("/a b", "' ' can't occur in a request's path; help: write it percent-encoded"),
        ("/ü", "'ü' can't occur in a request's path; help: write it percent-encoded"),
        ("/a?b", "'?' can't occur in a request's path; help: write it percent-encoded"),
        ("/{", "a parameter is written {name} or {*name}, and a literal brace {{ or }}"),
        ("/{a}{b}", "a segment can have one parameter only"),
        ("/{*a}/b", "{*name} must be last, because it matches the rest of the path"),
        ("/{a}/{a}", "two of its parameters are named \"a\""),
    ] {
        assert_eq!(
            mistake(|app| {
                app.get(path, response);
            }),
            format!("GET {path}: {why}")
        );
    }
    assert_eq!(
        mistake(|app| {
            app.route(Method::Connect, "/", response);
        }),
        "CONNECT /: Connect can't be routed"
    );
    assert_eq!(
        mistake(|app| {
            app.route(Method::Other, "/", response);
        }),
        "Other /: Other can't be routed"
    );
    for name in ["", "PROP FIND", "A/B", "M-OF-MORE-BYTES-THAN-A-METHOD-HAS"] {
        let why = format!("invalid method {name:?}: a method is a token of at most 32 bytes");
        assert_eq!(
            mistake(|app| {
                app.route(name, "/", response);
            }),
            format!("{name} /: {why}")
        );
    }
    assert_eq!(
        mistake(|app| {
            app.route("CONNECT", "/", response);
        }),
        "CONNECT /: Connect can't be routed"
    );
    assert_eq!(
        mistake(|app| {
            app.route("PROPFIND", "/", response).buffer(5);
            app.route("PROPFIND", "/", response);
        }),
        "PROPFIND / = PROPFIND /"
    );
    assert_eq!(
        mistake(|app| {
            app.scope("/{x}", |_| {});
        }),
        "the scope /{x}: a prefix can't have parameters"
    );
    assert_eq!(
        mistake(|app| {
            app.scope("/a", |app| {
                app.get("b", response);
            });
        }),
        "GET b: a path must begin with a slash"
    );
}

#[test]
fn standard_methods_in_another_case_are_refused() {
    for (name, right) in [("get", "GET"), ("Patch", "PATCH"), ("connect", "CONNECT")] {
        let why = format!("method names are case-sensitive; help: write {right:?}");
        assert_eq!(
            mistake(|app| {
                app.route(name, "/", response);
            }),
            format!("{name} /: {why}")
        );
    }
}

/// Rejects parameters in the syntax of other routers.
#[test]
fn parameters_in_other_spellings_are_refused_with_the_right_one() {
    const BRACES: &str = "a parameter is written {name}";
    const ALL: &str = "a parameter for the rest of the path is written {*name}";
    const PATTERN: &str = "a parameter can't have a pattern";
    const OPTIONAL: &str = "a parameter can't be optional: add a route for each path";
    for (path, why, right) in [
        ("/user/:id", BRACES, "/user/{id}"),
        ("/user/:id/posts/:post", BRACES, "/user/{id}/posts/{post}"),
        ("/user/<id>", BRACES, "/user/{id}"),
        ("/user/<int:id>", BRACES, "/user/{id}"),
        ("/{}", BRACES, "/{name}"),
        ("/{ id }", BRACES, "/{id}"),
        ("/user/:id?", OPTIONAL, "/user/{id}"),
        ("/{id?}", OPTIONAL, "/{id}"),
        ("/{id:[0-9]+}", PATTERN, "/{id}"),
        ("/{id:\\d{2}}/x", PATTERN, "/{id}/x"),
        ("/:id(\\d+)", PATTERN, "/{id}"),
        ("/files/*", ALL, "/files/{*rest}"),
        ("/files/**", ALL, "/files/{*rest}"),
        ("/files/*path", ALL, "/files/{*path}"),
        ("/files/:path*", ALL, "/files/{*path}"),
        ("/files/<path..>", ALL, "/files/{*path}"),
        ("/files/<path:rest>", ALL, "/files/{*rest}"),
        ("/{*}", ALL, "/{*rest}"),
        ("/{**path}", ALL, "/{*path}"),
        ("/{path*}", ALL, "/{*path}"),
        ("/{path...}", ALL, "/{*path}"),
        ("/{...path}", ALL, "/{*path}"),
    ] {
        let given = mistake(|app| {
            app.get(path, response);
        });
        assert_eq!(given, format!("GET {path}: {why}; help: write {right:?}"));
        let given = mistake(|app| {
            app.fast(path, Fast::text("a"));
        });
        assert_eq!(given, format!("the fast route {path}: {why}; help: write {right:?}"));
    }
    for (path, right) in [("/static/*", "/static"), ("/static/{*path}", "/static"), ("/*", "/")] {
        let given = mistake(|app| {
            app.scope(path, |_| {});
        });
        let why = "a prefix includes all paths under it";
        assert_eq!(given, format!("the scope {path}: {why}; help: write {right:?}"));
    }
    let mut app = App::new();
    for path in ["/v1/things:batch", "/a:b/{id}", "/{{id}}", "/a*b", "/a-{b}.html", "/{image-number}"] {
        app.get(path, response);
    }
    assert!(app.build().is_ok(), "these are what they say");
}

/// Rejects prefixes with parameters, in any syntax.
#[test]
fn parameters_in_prefixes_are_refused_in_every_spelling() {
    const WHY: &str = "a prefix can't have parameters";
    const REST: &str = "a prefix includes all paths under it; help: write \"/a\"";
    for (path, why) in [
        ("/:tenant", WHY),
        ("/<tenant>/x", WHY),
        ("/{tenant}", WHY),
        ("/a/*x/b", WHY),
        ("/a/:x/*", WHY),
        ("/a/*", REST),
        ("/a/{*x}", REST),
    ] {
        let given = mistake(|app| {
            app.mount(path, |_| App::new().build().expect("no mistakes").service(0));
        });
        assert_eq!(given, format!("the mount {path}: {why}"));
        let inner: [fn(&mut App); 2] = [
            |app| _ = app.mount("/", |_| App::new().build().expect("no mistakes").service(0)),
            |app| _ = app.fallback(response),
        ];
        for define in inner {
            let given = mistake(|app| {
                app.scope(path, define);
            });
            assert_eq!(given, format!("the scope {path}: {why}"));
        }
    }
    let mut app = App::new();
    for path in ["/a:b", "/c*d", "/e<f>"] {
        app.mount(path, |_| App::new().build().expect("no mistakes").service(0));
    }
    assert!(app.build().is_ok(), "these are what they say");
}

#[test]
fn a_handler_that_does_not_wait_reads_no_body() {
    const WHY: &str = "`.read()` is for async handlers and coroutines";
    let given = mistake(|app| {
        app.post("/upload", response).read();
    });
    let help =
        "add the handler with `post_async` or `post_coroutine`, or buffer the body with `.buffer(bytes_max)`";
    assert_eq!(given, format!("POST /upload: {WHY}; help: {help}"));
    let given = mistake(|app| {
        app.put("/upload/{id}", response).read();
    });
    let help = "add the handler with `route_async` or `route_coroutine`, or buffer the body with `.buffer(bytes_max)`";
    assert_eq!(given, format!("PUT /upload/{{id}}: {WHY}; help: {help}"));
    let given = mistake(|app| {
        app.fallback(response).read();
    });
    assert_eq!(given, format!("the fallback of /: {WHY}; help: buffer the body with `.buffer(bytes_max)`"));
    let mut app = App::new();
    app.post_async("/a", async |_: &mut shearwater::Call| {}).read();
    app.post("/b", response).read().buffer(1);
    assert!(app.build().is_ok());
}

#[test]
fn a_fast_route_that_can_not_be_encoded_is_refused() {
    for (fast, why) in [
        (Fast::text("a").field("Bad name", "x"), "the field \"Bad name\""),
        (Fast::text("a").field("X", "a\r\nb"), "the field \"X\""),
        (Fast::text("a").field("Content-Length", "1"), "the server's own"),
        (Fast::text("a").field("Content-Type", "x/y"), "Content-Type"),
        (Fast::bytes("a\nb", b"x".as_slice()), "Content-Type"),
        (Fast::text("a").methods(&[]), "no methods"),
        (Fast::text("a").methods(&[Method::Connect]), "can't be routed"),
        (Fast::text("a").cors(Cors::any().credentials()), "credentials"),
        (Fast::text("a").cors(Cors::origins(["https://example.org/"])), "invalid origin"),
        (Fast::text("a").cors(Cors::origins(["example.org"])), "invalid origin"),
        (Fast::with(|_| {}).cors(Cors::any().headers("X\n")), "Access-Control-Allow-Headers"),
    ] {
        let told = mistake(|app| {
            app.fast("/a", fast);
        });
        assert!(told.starts_with("the fast route /a: ") && told.contains(why), "{told}");
    }
    let told = mistake(|app| {
        app.fast("/{a}", Fast::text("a"));
    });
    assert_eq!(told, "the fast route /{a}: a fast route can't have parameters");
}

#[test]
fn all_mistakes_are_told_at_once_with_file_and_line() {
    let mut app = App::new();
    app.get("/a", response);
    let line = line!() + 1;
    app.get("/a", response);
    app.get("b", response);
    let Err(Error::Routes(errors)) = Server::new("127.0.0.1:0").start_app(app) else {
        panic!("it starts with mistakes")
    };
    let file = file!();
    let told = errors.to_string();
    let told: Vec<_> = told.lines().collect();
    assert_eq!(
        told,
        [
            format!(
                "GET /a ({file}:{line}) conflicts with GET /a ({file}:{}); help: remove one of them",
                line - 2
            ),
            format!("GET b ({file}:{}): a path must begin with a slash", line + 1),
        ]
    );
    let RouteError::Conflict { given, .. } = &errors.all()[0] else { panic!("{errors}") };
    assert_eq!((given.what(), given.location().line()), ("GET /a", line));
}

#[test]
fn what_does_not_meet_stands_side_by_side() {
    let mut app = App::new();
    app.get("/a/{x}", response);
    app.post("/a/{x}", response);
    app.put("/a/b", response);
    app.get("/a/{x}/c", response);
    app.get("/{x}/{y}/{z}/{u}", response);
    app.get("/b/{*rest}", response);
    app.fast("/a/b", Fast::text("a"));
    app.fallback(response);
    app.scope("/a", |app| {
        app.fallback(response);
        app.before(|_: &Request, _: &mut Response| ControlFlow::Continue(()));
    });
    app.state(1u8).state(1u16).local(|_| 1u8);
    assert!(app.build().is_ok());
}
