//! `[[site]]`: what is served.

use std::path::{Path, PathBuf};

use shearwater_config::Config;

use crate::args::Serve;
use crate::failure::Failure;
use crate::site::{self, Site};

/// Opens what is to be served: the site of the file, the folder of the command line, or what there is without both.
pub(crate) fn open(serve: &Serve, config: &Config) -> Result<Site, Failure> {
    let Some(of_file) = config.sites.first() else {
        let base = serve.config.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        return Site::open(serve.dir.as_deref(), base);
    };
    if let Some(dir) = &serve.dir {
        let (dir, file) = (dir.display(), config.file().display());
        return Err(Failure::start(format!(
            "the folder {dir} and the sites of {file} contradict each other: name one of both"
        )));
    }
    let root = of_file.serving.root.clone().unwrap_or_else(PathBuf::new);
    Site::folder(&root).map_err(|error| config.refuse("site[0].root", site::refusal(&root, &error)).into())
}
