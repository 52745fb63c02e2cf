//! Errors of rustls as reasons of the driver, and alerts that precede a session.

use rustls::{Error, PeerIncompatible, PeerMisbehaved};
use shearwater_io::secure::Failure;

/// Returns the reason for an error of rustls.
pub(crate) fn reason(error: &Error) -> Failure {
    match error {
        Error::PeerIncompatible(
            PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::ServerDoesNotSupportTls12Or13,
        ) => Failure::Version,
        Error::PeerIncompatible(_) => Failure::NothingInCommon,
        Error::NoApplicationProtocol => Failure::Protocol,
        Error::NoCertificatesPresented | Error::InvalidCertificate(_) => Failure::ClientCertificate,
        Error::AlertReceived(_) => Failure::Alert,
        Error::PeerMisbehaved(PeerMisbehaved::TooManyRenegotiationRequests) => Failure::Unsupported,
        Error::PeerMisbehaved(_)
        | Error::InvalidMessage(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::DecryptError
        | Error::PeerSentOversizedRecord => Failure::BadRecord,
        _ => Failure::Other,
    }
}

/// Alerts that are sent before there is a session (RFC 8446, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alert {
    UnexpectedMessage = 10,
    RecordOverflow = 22,
    DecodeError = 50,
    InternalError = 80,
    UnrecognizedName = 112,
    NoApplicationProtocol = 120,
}

impl Alert {
    /// Appends it as a record that isn't encrypted.
    pub(crate) fn append(self, reply: &mut Vec<u8>) {
        const ALERT: u8 = 21;
        const FATAL: u8 = 2;
        reply.extend_from_slice(&[ALERT, 3, 3, 0, 2, FATAL, self as u8]);
    }
}
