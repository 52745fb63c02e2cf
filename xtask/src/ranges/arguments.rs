//! Why this server answers otherwise than nginx where it does.

use super::outcome::Aspect;

/// A difference that stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Argument {
    Announced,
    AnnouncedCoded,
    Any,
    Coded,
    Date,
    Empty,
    Head,
    Huge,
    Invalid,
    List,
    Many,
    Overlap,
    OverlapWhole,
    TwoFields,
    Weights,
}

impl Argument {
    /// One that holds of every answer with this status, listed or not.
    pub(super) fn of_all(status: u16, aspect: Aspect) -> Option<Self> {
        (status == 206 && aspect == Aspect::AcceptRanges).then_some(Self::Announced)
    }

    /// The difference in a few words.
    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Announced => "Accept-Ranges in a 206",
            Self::AnnouncedCoded => "Accept-Ranges for a coded file",
            Self::Any => "* in Accept-Encoding",
            Self::Coded => "a range of a coded file",
            Self::Date => "If-Range with a date that somebody has set",
            Self::Empty => "a range of an empty file",
            Self::Head => "Range in a HEAD",
            Self::Huge => "a number beyond 64 bits",
            Self::Invalid => "an invalid Range",
            Self::List => "empty elements and tabs in the list",
            Self::Many => "more than 64 ranges",
            Self::Overlap => "overlapping ranges",
            Self::OverlapWhole => "overlapping ranges longer than the file",
            Self::TwoFields => "two Range fields",
            Self::Weights => "weights in Accept-Encoding",
        }
    }

    /// The argument; sections are those of RFC 9110.
    pub(super) fn why(self) -> &'static str {
        match self {
            Self::Announced => "it may stand in any answer of the resource (14.3)",
            Self::AnnouncedCoded => {
                "ranges are of the form that is selected (14.2), and its strong tag makes them safe"
            }
            Self::Any => "it stands for every coding that is not named (12.5.3)",
            Self::Coded => {
                "ranges are of the form that is selected (14.2), and its strong tag makes them safe"
            }
            Self::Date => {
                "a strong date is asked for (13.1.5); one that was set tells no versions apart (8.8.2.2)"
            }
            Self::Empty => {
                "of an empty file no range can be told: the field is ignored, as nginx does for a range from 0"
            }
            Self::Head => "Range is defined for GET alone and must be ignored elsewhere (14.2)",
            Self::Huge => {
                "a position has any number of digits, and behind the end is the end (14.1.1, 14.1.2)"
            }
            Self::Invalid => {
                "an invalid Range is ignored (14.2 allows both): the client gets what it can use"
            }
            Self::List => "lists may have them, and a recipient has to bear them (5.6.1)",
            Self::Many => "a small request must not cost much (17.15): the field is ignored",
            Self::Overlap => "overlapping ranges are coalesced (15.3.7.2): no byte is sent twice",
            Self::OverlapWhole => {
                "overlapping ranges are coalesced (15.3.7.2), here to one of the whole file"
            }
            Self::TwoFields => {
                "the field is no list: of two nothing can be told, and the file is sent whole (14.2)"
            }
            Self::Weights => "of what is acceptable the one of the highest weight is preferred (12.5.3)",
        }
    }

    /// What it covers.
    pub(super) fn aspects(self) -> &'static [Aspect] {
        use Aspect::{AcceptRanges, Content, ContentEncoding, ContentRange, ContentType, Length, Status};
        match self {
            Self::Announced | Self::AnnouncedCoded => &[AcceptRanges],
            Self::Overlap => &[ContentRange, ContentType, Length, Content],
            Self::Any => &[ContentEncoding, Length, Content],
            Self::Weights => &[AcceptRanges, ContentEncoding, Length, Content],
            Self::Coded
            | Self::Date
            | Self::Empty
            | Self::Head
            | Self::Huge
            | Self::Invalid
            | Self::List
            | Self::Many
            | Self::OverlapWhole
            | Self::TwoFields => &[Status],
        }
    }
}
