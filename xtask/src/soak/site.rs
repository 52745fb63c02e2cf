//! What is soaked: the program with a folder of files, the example that takes bodies, and what both answer.

use std::net::SocketAddr;

use super::bad_requests;
use super::catalogue::{self, Catalogue};
use super::exchange::Form;
use crate::harness::common::Common;
use crate::harness::folder::Folder;
use crate::harness::random::Random;
use crate::harness::server::Server;
use crate::harness::trouble::Outcome;

/// Both servers with their answers.
#[derive(Debug)]
pub(super) struct Site {
    /// The program.
    pub(super) program: Server,
    /// The example.
    pub(super) example: Server,
    /// What they answer.
    pub(super) catalogue: Catalogue,
    bad: [Vec<Form>; 2],
}

impl Site {
    /// Starts both and asks each once for everything.
    pub(super) fn start(common: &Common, folder: &Folder) -> Outcome<Self> {
        let mut random = Random::stream(common.seed, 0);
        let files = catalogue::write_files(folder, &mut random)?;
        let program = Server::serve_folder(common, &folder.path().join("public"), folder)?;
        let example = Server::example(common, &[], folder)?;
        let catalogue = Catalogue::learn(program.address(), example.address(), &files, &mut random)?;
        let bad = [bad_requests::learn(program.address())?, bad_requests::learn(example.address())?];
        Ok(Self { program, example, catalogue, bad })
    }

    /// Both servers with their names in the report.
    pub(super) fn servers(&self) -> [(&'static str, &Server); 2] {
        [("program", &self.program), ("example", &self.example)]
    }

    /// How many requests, each on a connection of its own, were sent to learn the answers.
    pub(super) fn learnt(&self) -> u64 {
        self.catalogue.learnt() + self.bad.iter().map(|forms| forms.len() as u64).sum::<u64>()
    }

    /// Where the program and the example listen.
    pub(super) fn addresses(&self) -> [SocketAddr; 2] {
        [self.program.address(), self.example.address()]
    }

    /// What the program and the example refuse.
    pub(super) fn bad(&self) -> [&[Form]; 2] {
        [&self.bad[0], &self.bad[1]]
    }
}
