//! Responses that are polled first and deferred only if they aren't ready.

use shearwater_engine::Limits;

use crate::harness::World;
use crate::harness::asking::{assert_goes_on, end, get, got};
use crate::harness::waiting::at_work;

#[test]
fn what_was_looked_at_takes_as_many_turns_as_if_it_had_not_been() {
    let turns = |target: &str, wanted: &str| {
        let mut world = World::default();
        let mut client = world.connect();
        client.send(get(target));
        let turns = (1..10).find(|_| {
            world.turn();
            !client.read().is_empty()
        });
        let text = String::from_utf8_lossy(client.read()).into_owned();
        assert!(text.ends_with(wanted), "{text:?}");
        assert_eq!(at_work(), 0);
        assert_goes_on(&mut world, &mut client);
        end(world, &mut client);
        turns.expect("it is answered")
    };
    turns("/looked/0", "\r\n\r\nat once\n");
    for yields in [1, 3] {
        let usual = turns(&format!("/later/{yields}"), "");
        assert_eq!(turns(&format!("/looked/{yields}"), "\r\n\r\nlater\n"), usual);
    }
}

#[test]
fn where_nothing_more_can_be_responded_later_nothing_is_looked_at() {
    let mut world = World::with_limits(Limits { calls_max: 1, ..Limits::default() });
    let (_, waiting) = got(&mut world, get("/never"));
    let (text, refused) = got(&mut world, get("/looked/0"));
    assert!(text.starts_with("HTTP/1.1 503 "), "{text:?}");
    assert_eq!((world.totals().hit_calls, at_work()), (1, 1));
    waiting.peer.reset();
    world.pass(100);
    let (text, mut client) = got(&mut world, get("/looked/1"));
    assert!(text.ends_with("later\n"), "there is room again: {text:?}");
    refused.peer.reset();
    end(world, &mut client);
}
