//! Visitors: connections side by side, kept for a while, each with one request or several at once, every answer compared.

use std::net::SocketAddr;

use testkit::Client;
use testkit::random::Rng;

use super::question::Question;

/// Connections side by side.
const SIDE_BY_SIDE: u64 = 32;
/// Rounds that they are kept for, at most.
const ROUNDS_MAX: u64 = 64;
/// One round in so many has several requests at once on a connection.
const PIPELINED_ONE_IN: u64 = 8;
/// So many at once.
const PIPELINED_MAX: u64 = 16;
/// Answers with a longer body are asked for one by one, bytes: nobody reads while requests are written.
const PIPELINED_BODY_BYTES_MAX: usize = 16 * 1024;

/// Who is visited, and how often.
#[derive(Debug)]
pub(super) struct Visits {
    /// The server.
    pub(super) address: SocketAddr,
    /// Answers to get.
    pub(super) answers: u64,
    /// Seed of everything random.
    pub(super) seed: u64,
}

/// Asks until there are as many answers as wanted, and gives their number.
///
/// # Errors
/// The first answer that is wrong, with its request.
pub(super) fn visit(visits: &Visits, questions: &[Question]) -> Result<u64, String> {
    let mut random = Rng::with_seed(visits.seed);
    let mut answers = 0;
    while answers < visits.answers {
        let beside = random.u64(1..=SIDE_BY_SIDE);
        let mut clients = Vec::new();
        for _ in 0..beside {
            clients.push(Client::connect(visits.address).map_err(|error| format!("connecting: {error}"))?);
        }
        for _ in 0..random.u64(1..=ROUNDS_MAX) {
            answers += round(&mut clients, questions, &mut random)?;
        }
    }
    Ok(answers)
}

/// Each sends what it has to, then each reads: the server has them all at once.
fn round(clients: &mut [Client], questions: &[Question], random: &mut Rng) -> Result<u64, String> {
    let pipelined = random.u64(..PIPELINED_ONE_IN) == 0;
    let mut asked = Vec::new();
    for client in clients.iter_mut() {
        let drawn = draw(questions, pipelined, random);
        let bytes: Vec<u8> = drawn.iter().flat_map(|question| question.request.iter().copied()).collect();
        client.send(&bytes).map_err(|error| format!("sending: {error}"))?;
        asked.push(drawn);
    }
    for (client, drawn) in clients.iter_mut().zip(&asked) {
        for question in drawn {
            let answer = client.response_to(&question.method);
            question.judge(&answer.map_err(|error| question.failed(&error))?)?;
        }
    }
    Ok(asked.iter().map(|drawn| drawn.len() as u64).sum())
}

fn draw<'a>(questions: &'a [Question], pipelined: bool, random: &mut Rng) -> Vec<&'a Question> {
    let mut any = || &questions[random.usize(..questions.len())];
    let first = any();
    let mut drawn = vec![first];
    if pipelined {
        let more: Vec<_> = (1..PIPELINED_MAX).map(|_| any()).collect();
        let short = |question: &&Question| {
            question.body.len().max(question.request.len()) <= PIPELINED_BODY_BYTES_MAX
        };
        if short(&first) {
            drawn.extend(more.into_iter().filter(short));
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener};

    use testkit::random::Rng;

    use super::{Visits, draw, visit};
    use crate::pgo::question::Question;

    /// A server that answers every four bytes with the same.
    fn visited(answer: &'static str) -> Result<u64, String> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let (mut reader, mut writer) = (&stream, &stream);
                    let mut request = [0; 4];
                    while reader.read_exact(&mut request).is_ok()
                        && writer.write_all(answer.as_bytes()).is_ok()
                    {}
                });
            }
        });
        let question = Question { request: b"GET!".to_vec(), ..Question::new("", "", "", 200, b"ok") };
        visit(&Visits { address, answers: 200, seed: 1 }, &[question])
    }

    #[test]
    fn all_answers_are_counted_and_a_wrong_one_ends_it() {
        let answers = visited("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").expect("right answers");
        assert!(answers >= 200, "{answers}");
        for wrong in [
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno",
            "HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nok",
            "?",
        ] {
            assert!(visited(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_long_is_asked_for_alone() {
        let questions =
            [Question::new("GET", "/s", "", 200, b"s"), Question::new("GET", "/l", "", 200, &[0; 20_000])];
        let mut random = Rng::with_seed(1);
        for _ in 0..1000 {
            let drawn = draw(&questions, true, &mut random);
            assert!(drawn.len() == 1 || drawn.iter().all(|question| question.body.len() == 1));
            assert_eq!(draw(&questions, false, &mut random).len(), 1);
        }
    }
}
