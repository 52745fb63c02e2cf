//! The servers that are attacked, and the one right answer of each.

use super::attack::Host;
use super::template::Template;
use crate::harness::body_source::SparseFile;
use crate::harness::common::Common;
use crate::harness::folder::Folder;
use crate::harness::place::Apart;
use crate::harness::random::Random;
use crate::harness::server::Server;
use crate::harness::trouble::Outcome;

/// The small file.
pub(super) const PAGE: &str = "/page.txt";
/// The large file.
pub(super) const LARGE: &str = "/large.bin";
/// Its length in bytes.
pub(super) const LARGE_LENGTH: u64 = 2 << 30;
/// Descriptors of a server with few.
pub(super) const FEW_DESCRIPTORS: u64 = 1_024;
/// Length of the small file, bytes.
const PAGE_LENGTH: usize = 1024;

/// A server on a core of its own, with what it serves.
#[derive(Debug)]
pub(super) struct Site {
    /// The server.
    pub(super) server: Server,
    /// What normal clients ask for.
    pub(super) target: &'static str,
    body: Vec<u8>,
    /// Gone with the site.
    _folder: Folder,
}

impl Site {
    /// Starts the server on its core and moves this thread to the clients' core.
    pub(super) fn start(common: &Common, host: Host) -> Outcome<Self> {
        let folder = Folder::new(common.keep)?;
        let mut random = Random::stream(common.seed, 0);
        let page = random.bytes(PAGE_LENGTH);
        folder.write(&format!("public{PAGE}"), &page)?;
        let root = folder.path().join("public");
        SparseFile::new(LARGE_LENGTH, 0, &mut random).write(&root.join(&LARGE[1..]))?;
        let apart = Apart::begin();
        let server = match host {
            Host::Folder => Server::serve_folder(common, &root, &folder),
            Host::FewDescriptors => {
                Server::serve_folder_with_descriptors(common, &root, FEW_DESCRIPTORS, &folder)
            }
            Host::Routes => Server::example(common, &[], &folder),
        };
        let _where = apart.leave();
        let (target, body) = match host {
            Host::Folder | Host::FewDescriptors => (PAGE, page),
            Host::Routes => ("/", b"Hello, world\n".to_vec()),
        };
        Ok(Self { server: server?, target, body, _folder: folder })
    }

    /// Asks once: the answer that every later one has to equal. It fails where the server does not answer rightly.
    pub(super) fn template(&self) -> Outcome<Template> {
        Template::learn(self.server.address(), self.target, &self.body)
    }
}
