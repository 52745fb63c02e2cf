//! Addresses to listen on.

use std::net::SocketAddr;
use std::path::absolute;

use toml::Spanned;
use toml::de::DeValue;

use super::Rule;
use crate::names::shown;
use crate::pen::Pen;
use crate::reading::Reading;
use crate::sections::listen::Address;

/// Before the path of a socket of the file system.
const UNIX: &str = "unix:";

/// Bytes of such a path: what the kernel's structure has room for, its end included, is 108 on Linux and 104 elsewhere.
const UNIX_PATH_BYTES_MAX: usize = 103;

/// `ADDRESS:PORT` or `unix:PATH`.
pub(crate) struct ListenAddress;

impl Rule<Address> for ListenAddress {
    fn read(&self, value: &Spanned<DeValue<'_>>, reading: &mut Reading<'_>, place: &mut Address) {
        let Some(text) = reading.text(value, &self.allowed()) else { return };
        if let Some(path) = text.value.strip_prefix(UNIX) {
            let joined = reading.base.join(path);
            let whole = absolute(&joined).unwrap_or(joined);
            if path.is_empty() || path.contains('\0') {
                reading.problem(&value.span(), "after unix: stands the path of a socket");
            } else if whole.as_os_str().len() > UNIX_PATH_BYTES_MAX {
                let most = format!("the whole path of a socket may have {UNIX_PATH_BYTES_MAX} bytes");
                reading.problem(&value.span(), most);
            } else {
                *place = Address::Unix(whole);
                reading.becomes(&place.to_string());
            }
            return;
        }
        match text.value.parse::<SocketAddr>() {
            Ok(address) => {
                *place = Address::Tcp(address);
                reading.becomes(&place.to_string());
            }
            Err(_) => {
                let given = shown(&text.shown);
                let what = format!("{given:?} is no address and port; wanted is {}", self.allowed());
                reading.problem(&value.span(), what);
            }
        }
    }

    fn write(&self, value: &Address, pen: &mut Pen<'_>) -> bool {
        pen.quoted(&value.to_string());
        true
    }

    fn allowed(&self) -> String {
        "such as \"127.0.0.1:8080\", \"[::]:80\" or \"unix:/run/shearwater.sock\"".to_owned()
    }
}
