//! Fair shares of a turn among busy connections, on the kernel's drivers; called by `kernel.rs`.

use std::rc::Rc;

use shearwater_io::limits::{
    BULK_RECV_BYTES_PER_TURN_MAX, COPIED_BYTES_WEIGHT, RECV_AFTER_PAUSE_MAX, RECV_BUFFER_BYTES,
    SEND_BYTES_PER_TURN_MAX, SEND_CALL_BYTES, SEND_QUANTUM_BYTES,
};

use shearwater_io::{Driver, Item, Output, Shared};

use crate::contract::Harness;
use crate::contract::sockets::{Kernel, SocketHarness};
use crate::contract::world::{Note, SentAs, World, file_item, file_of, pattern, with_file};

/// T2, S5: the next turn serves what one can't, before other connections get further shares.
pub(crate) fn downloads_progress_side_by_side<K: Kernel>() {
    const DOWNLOADS: usize = 40;
    const FILE: u64 = 6_000_000;
    let file = file_of(&pattern(FILE as usize, 3));
    let mut world = World::<SocketHarness<K>>::new();
    let downloads: Vec<_> = (0..DOWNLOADS).map(|_| world.connect()).collect();
    for (_, token) in &downloads {
        world.send(*token, with_file(b"", &file, 0, FILE));
    }
    let mut got = vec![0; DOWNLOADS];
    let mut chunk = Vec::new();
    let mut before = 0;
    let mut are_long = true;
    for _ in 0..10_000 {
        let mut each = Vec::new();
        for (_, token) in &downloads {
            each.push(if world.is_sending(*token) { world.driver().send_progress(*token) } else { FILE });
        }
        let step = each.iter().sum::<u64>() - before;
        let most = if are_long { SEND_QUANTUM_BYTES } else { SEND_BYTES_PER_TURN_MAX };
        assert!(step <= most, "{step} bytes in one turn");
        before += step;
        are_long = each.iter().all(|done| FILE - done > SEND_BYTES_PER_TURN_MAX);
        for ((peer, _), got) in downloads.iter().zip(&mut got) {
            chunk.clear();
            world.harness.read(*peer, usize::MAX, &mut chunk);
            *got += chunk.len() as u64;
        }
        if got.contains(&FILE) {
            break;
        }
        world.turn(5);
    }
    assert!(got.contains(&FILE), "the first is complete");
    let behind = got.iter().filter(|got| **got < FILE / 4).count();
    assert_eq!(behind, 0, "no connection was starved: {got:?}");
}

/// T2: a short response leaves before the turn's share of a file: small requests don't wait for megabytes.
pub(crate) fn short_responses_precede_files<K: Kernel>() {
    const FILE: u64 = 16_000_000;
    let file = file_of(&pattern(FILE as usize, 9));
    let mut world = World::<SocketHarness<K>>::new();
    let (reader, download) = world.connect();
    let (neighbour, quick) = world.connect();
    world.send(download, with_file(b"", &file, 0, FILE));
    let (mut chunk, mut responded_beside, mut words, mut turns) = (Vec::new(), 0, 0, 0);
    while world.is_sending(download) {
        world.harness.read(reader, usize::MAX, &mut chunk);
        chunk.clear();
        if world.page(quick).received.len() == words * b"a word".len() {
            world.harness.write(neighbour, b"a word");
            words += 1;
        }
        let before = world.driver().send_progress(download);
        world.wait(5);
        let mut responses = false;
        while let Some(note) = world.step() {
            if matches!(note, Note::Received(token, _) if token == quick) {
                assert_eq!(world.driver().send_progress(download), before, "read behind a part of the file");
                let mut response = Output::new();
                response.bytes_mut().extend_from_slice(b"an answer");
                world.send(quick, response);
                responses = true;
            }
        }
        let goes_on = !world.is_sending(download) || world.driver().send_progress(download) > before;
        world.harness.read(neighbour, usize::MAX, &mut chunk);
        if responses && goes_on {
            assert_eq!(chunk, b"an answer", "it waits for the file's part of the turn");
            responded_beside += 1;
        }
        // After a turn without progress it may leave in the next one.
        world.until("the answer is sent", |world| !world.is_sending(quick));
        world.harness.read(neighbour, usize::MAX, &mut chunk);
        turns += 1;
        assert!(turns < 10_000, "the file never comes to its end");
    }
    assert!(responded_beside > 10, "{responded_beside} of {turns}");
}

/// T2: a file that fits a turn doesn't wait until each of many longer ones had its share.
pub(crate) fn short_files_precede_long_downloads<K: Kernel>() {
    const DOWNLOADS: usize = 40;
    const LONG: u64 = 16_000_000;
    let file = file_of(&pattern(LONG as usize, 3));
    let mut world = World::<SocketHarness<K>>::new();
    let downloads: Vec<_> = (0..DOWNLOADS).map(|_| world.connect()).collect();
    let (reader, quick) = world.connect();
    for (_, token) in &downloads {
        world.send(*token, with_file(b"", &file, 0, LONG));
    }
    let mut chunk = Vec::new();
    for len in [1000, 100_000, 1_000_000].repeat(4) {
        world.send(quick, with_file(b"", &file, 0, len));
        let mut turns = 0;
        while world.is_sending(quick) {
            for peer in downloads.iter().map(|(peer, _)| *peer).chain([reader]) {
                chunk.clear();
                world.harness.read(peer, usize::MAX, &mut chunk);
            }
            world.turn(5);
            turns += 1;
            assert!(turns < DOWNLOADS / 2, "{len} bytes wait for {turns} turns");
        }
    }
    assert!(downloads.iter().all(|(_, token)| world.is_sending(*token)), "none has ended");
}

/// T2: a response in memory is sent at once up to a length; longer ones after other connections were read.
pub(crate) fn long_sends_start_after_other_work<K: Kernel>() {
    for (len, is_long) in [(SEND_QUANTUM_BYTES, false), (SEND_QUANTUM_BYTES + 1, true)] {
        let content = pattern(len as usize, 3);
        for is_shared in [false, true] {
            let (mut world, peer, token) = World::<SocketHarness<K>>::connected();
            let mut output = Output::new();
            if is_shared {
                output.push(Item::Shared(Shared::Block(Rc::new(content.clone().into()))));
            } else {
                output.bytes_mut().extend_from_slice(&content);
            }
            world.send(token, output);
            // As an entry it leaves with those of the next turn.
            let is_entry = world.driver().name() == "uring";
            let begins = !is_entry && !is_long;
            assert_eq!(world.driver().send_progress(token) > 0, begins, "{len}, {is_shared}");
            assert_eq!(world.peer_gets(peer, content.len()), content);
        }
    }
}

/// T2: concurrent uploads are read in turn, a bounded part each, and small requests at once.
pub(crate) fn uploads_progress_side_by_side<K: Kernel>() {
    const UPLOADS: usize = 40;
    // As much as a socket takes without being read.
    const EACH: usize = 3 * RECV_BUFFER_BYTES;
    // Bytes in parts that fill no buffer are beyond the turn's budget.
    const LATER: usize = 2 * BULK_RECV_BYTES_PER_TURN_MAX;
    let mut world = World::<SocketHarness<K>>::new();
    // A completion driver receives some of each before it counts as an upload.
    let begins = if world.driver().name() == "uring" { UPLOADS * RECV_AFTER_PAUSE_MAX } else { 0 };
    let at_first = begins + LATER;
    let uploads: Vec<_> = (0..UPLOADS).map(|_| world.connect()).collect();
    let (neighbour, quiet) = world.connect();
    world.harness.write(neighbour, b"first ");
    world.idle();
    let content = pattern(EACH, 7);
    let mut left = [EACH; UPLOADS];
    let (mut before, mut turns) = (0, 0);
    while left.iter().any(|left| *left > 0) || before < UPLOADS * EACH {
        for ((peer, _), left) in uploads.iter().zip(&mut left) {
            *left -= world.harness.write(*peer, &content[EACH - *left..]);
        }
        if turns == 10 {
            world.harness.write(neighbour, b"a word");
        }
        world.turn(5);
        let got: Vec<_> = uploads.iter().map(|(_, token)| world.page(*token).received.len()).collect();
        let all = got.iter().sum::<usize>();
        let most = if before < at_first { at_first } else { LATER };
        assert!(all - before <= most, "{} bytes in one turn", all - before);
        (before, turns) = (all, turns + 1);
        assert!(turns < 10_000, "the input never comes to an end: {got:?}");
        if turns == 12 {
            assert_eq!(world.page(quiet).received, b"first a word");
        }
    }
    assert!(turns > 12);
    for (_, token) in &uploads {
        assert!(world.page(*token).received == content);
    }
}

/// Copying takes longer, so a turn copies less.
pub(crate) fn copied_files_take_more_turns<K: Kernel>() {
    const DOWNLOADS: usize = 40;
    const FILE: u64 = 150_000;
    const PIECE: u64 = 64 * 1024;
    let content = pattern(FILE as usize, 4);
    let mut world = World::<SocketHarness<K>>::new();
    let downloads: Vec<_> = (0..DOWNLOADS).map(|_| world.connect()).collect();
    for (_, token) in &downloads {
        let file = Rc::into_inner(file_of(&content)).expect("nobody else has it").copied();
        world.send(*token, with_file(b"", &Rc::new(file), 0, FILE));
    }
    let (mut before, mut turns) = (0, 0);
    while before < FILE * DOWNLOADS as u64 {
        let mut done = 0;
        for (_, token) in &downloads {
            done += if world.is_sending(*token) { world.driver().send_progress(*token) } else { FILE };
        }
        let most = SEND_BYTES_PER_TURN_MAX / COPIED_BYTES_WEIGHT + PIECE;
        assert!(done - before <= most, "{} bytes in one turn", done - before);
        before = done;
        world.turn(5);
        turns += 1;
        assert!(turns < 1000);
    }
    for (peer, _) in &downloads {
        assert_eq!(world.peer_gets(*peer, content.len()), content);
    }
}

/// Many small ranges of a file take many calls: they are spread over turns, and arrive in order.
pub(crate) fn many_small_pieces_take_several_turns<K: Kernel>() {
    const CALLS: u64 = SEND_QUANTUM_BYTES / SEND_CALL_BYTES;
    const PIECES: u64 = 5 * CALLS;
    let whole = pattern(2 * PIECES as usize, 5);
    let file = file_of(&whole);
    let (mut world, peer, token) = World::<SocketHarness<K>>::connected();
    let mut output = Output::new();
    for piece in 0..PIECES {
        output.push(file_item(&file, 2 * piece, 1));
    }
    world.send(token, output);
    let mut before = 0;
    let mut turns = 0;
    while world.is_sending(token) {
        let done = world.driver().send_progress(token);
        assert!(done - before <= CALLS, "{before} to {done} in one turn");
        before = done;
        world.turn(5);
        turns += 1;
        assert!(turns < 1000);
    }
    assert_eq!(world.page(token).sent, [SentAs::Whole]);
    let wanted: Vec<u8> = whole.iter().copied().step_by(2).collect();
    assert_eq!(world.peer_gets(peer, wanted.len()), wanted);
}
