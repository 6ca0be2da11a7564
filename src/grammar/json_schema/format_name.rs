//! The formats that the 2020-12 vocabulary names.

/// A `format` that is a demand and not only an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// RFC 3339 `date-time`.
    DateTime,
    /// RFC 3339 `full-date`.
    Date,
    /// RFC 3339 `full-time`.
    Time,
    /// RFC 3339 appendix A `duration`.
    Duration,
    /// RFC 5321 `Mailbox`.
    Email,
    /// RFC 6531 `Mailbox`.
    IdnEmail,
    /// RFC 1123 host name.
    Hostname,
    /// RFC 5890 internationalised host name.
    IdnHostname,
    /// RFC 2673 dotted quad.
    Ipv4,
    /// RFC 4291 address.
    Ipv6,
    /// RFC 3986 URI.
    Uri,
    /// RFC 3986 URI or relative reference.
    UriReference,
    /// RFC 3987 IRI.
    Iri,
    /// RFC 3987 IRI or relative reference.
    IriReference,
    /// RFC 4122 UUID.
    Uuid,
    /// RFC 6570 URI template.
    UriTemplate,
    /// RFC 6901 JSON pointer.
    JsonPointer,
    /// Relative JSON pointer.
    RelativeJsonPointer,
    /// ECMA-262 regular expression.
    Regex,
}

impl Format {
    /// Every format, in the order of the specification.
    pub const ALL: [Self; 19] = [
        Self::DateTime,
        Self::Date,
        Self::Time,
        Self::Duration,
        Self::Email,
        Self::IdnEmail,
        Self::Hostname,
        Self::IdnHostname,
        Self::Ipv4,
        Self::Ipv6,
        Self::Uri,
        Self::UriReference,
        Self::Iri,
        Self::IriReference,
        Self::Uuid,
        Self::UriTemplate,
        Self::JsonPointer,
        Self::RelativeJsonPointer,
        Self::Regex,
    ];

    /// The name in schemas.
    pub fn name(self) -> &'static str {
        match self {
            Self::DateTime => "date-time",
            Self::Date => "date",
            Self::Time => "time",
            Self::Duration => "duration",
            Self::Email => "email",
            Self::IdnEmail => "idn-email",
            Self::Hostname => "hostname",
            Self::IdnHostname => "idn-hostname",
            Self::Ipv4 => "ipv4",
            Self::Ipv6 => "ipv6",
            Self::Uri => "uri",
            Self::UriReference => "uri-reference",
            Self::Iri => "iri",
            Self::IriReference => "iri-reference",
            Self::Uuid => "uuid",
            Self::UriTemplate => "uri-template",
            Self::JsonPointer => "json-pointer",
            Self::RelativeJsonPointer => "relative-json-pointer",
            Self::Regex => "regex",
        }
    }

    /// The format of a name. `None`: unknown, so the keyword is an annotation and demands
    /// nothing.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_formats() {
        for format in Format::ALL {
            assert_eq!(Format::by_name(format.name()), Some(format));
        }
        assert_eq!(Format::by_name("color"), None);
        assert_eq!(Format::by_name("URI"), None);
    }
}
