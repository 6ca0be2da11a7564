use super::*;

fn language(format: Format) -> Arc<Dfa> {
    format.language(&mut Fuel::new(10)).unwrap()
}

/// Each format with texts that have it, and texts that do not.
const CASES: [(Format, &[&str], &[&str]); Format::ALL.len()] = [
    (
        Format::DateTime,
        &[
            "1963-06-19T08:30:06.283185Z",
            "1990-12-31T23:59:60Z",
            "1990-12-31T15:59:60.123-08:00",
            "1963-06-19t08:30:06z",
            "2000-02-29T00:00:00+05:30",
        ],
        &[
            "1998-12-31T23:58:60Z",
            "1998-12-31T22:59:60Z",
            "1990-02-31T15:59:59.123-08:00",
            "1990-12-31T15:59:59-24:00",
            "1963-06-19T08:30:06.28123+01:00Z",
            "06/19/1963 08:30:06 PST",
            "2013-350T01:01:01",
            "1963-06-19T08:30:06",
            "1963-06-19 08:30:06Z",
        ],
    ),
    (
        Format::Date,
        &[
            "1963-06-19",
            "2020-01-31",
            "2020-02-29",
            "2000-02-29",
            "0000-02-29",
            "2021-04-30",
            "2021-12-31",
        ],
        &[
            "2021-02-29",
            "1900-02-29",
            "2020-02-30",
            "2021-04-31",
            "2021-13-01",
            "2021-00-10",
            "2021-01-00",
            "1998-1-20",
            "06/19/1963",
            "20230328",
            "2013-350",
        ],
    ),
    (
        Format::Time,
        &[
            "08:30:06Z",
            "23:59:60Z",
            "23:59:60+00:00",
            "01:29:60+01:30",
            "15:59:60-08:00",
            "08:30:06.283185z",
            "08:30:06+00:20",
        ],
        &[
            "22:59:60Z",
            "23:58:60Z",
            "23:59:60+01:00",
            "24:00:00Z",
            "00:60:00Z",
            "00:00:61Z",
            "12:00:00",
            "08:30:06-08:000",
            "8:3:6Z",
            "01:02:03+24:00",
            "08:30:06,5Z",
        ],
    ),
    (
        Format::Duration,
        &[
            "P4DT12H30M5S",
            "P4Y",
            "PT0S",
            "P0D",
            "P1M",
            "PT1M",
            "PT36H",
            "P1DT12H",
            "P2W",
            "P1Y2M3DT4H5M6S",
        ],
        &[
            "PT1D",
            "4DT12H30M5S",
            "P",
            "PT",
            "P2D1Y",
            "P1D2H",
            "P2S",
            "P1Y2W",
            "P1",
            "P1YT",
            "P1Y1D",
            "PT1H1S",
            "P1.5D",
        ],
    ),
    (
        Format::Email,
        &[
            "joe.bloggs@example.com",
            "te~st@example.com",
            "\"joe bloggs\"@example.com",
            "\"joe..bloggs\"@example.com",
            "\"joe@bloggs\"@example.com",
            "\"a\\\"b\"@x.org",
            "joe.bloggs@[127.0.0.1]",
            "joe.bloggs@[IPv6:::1]",
            "a@localhost",
            "~!#$%&'*+-/=?^_`{|}@example.com",
        ],
        &[
            "2962",
            "joe.bloggs@",
            "@example.com",
            ".test@example.com",
            "test.@example.com",
            "te..st@example.com",
            "joe.bloggs@invalid=domain.com",
            "joe.bloggs@[127.0.0.300]",
            "a b@example.com",
            "a@b@c",
            "a@-b.com",
            "josé@example.com",
        ],
    ),
    (
        Format::IdnEmail,
        &["실례@실례.com", "joe.bloggs@example.com", "\"ünter\"@büro.de"],
        &["2962", "@実例.com", "실례@"],
    ),
    (
        Format::Hostname,
        &[
            "www.example.com",
            "h",
            "a-b.c",
            "1host",
            "hostnam3",
            "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk.com",
            "a.b.c.d.e.f.example",
            "abc--d",
        ],
        &[
            "-a-host-name-that-starts-with--",
            "not_a_valid_host_name",
            "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl.com",
            "-hostname",
            "hostname-",
            "host_name",
            "",
            ".",
            "a..b",
            ".example",
            "example.",
            "XN--aa---o47jg78q",
            "ab--cd.ef--.a",
            "aa--b",
        ],
    ),
    (
        Format::IdnHostname,
        &["실례.테스트", "bücher.example", "hostname", "例え.テスト", "пример.рф"],
        &["〮실례.테스트", "-> $1.00 <--", "", "bücher-", "a·l", "ß\u{301}", "\u{302e}"],
    ),
    (
        Format::Ipv4,
        &["192.168.0.1", "0.0.0.0", "255.255.255.255", "87.10.0.1"],
        &[
            "127.0.0.0.1",
            "256.256.256.256",
            "127.0",
            "0x7f000001",
            "087.10.0.1",
            "192.168.1.0/24",
            " 1.1.1.1",
            "1২7.0.0.1",
            "",
        ],
    ),
    (
        Format::Ipv6,
        &[
            "::1",
            "::",
            "::abef",
            "::42:ff:1",
            "d6::",
            "1:d6::42",
            "1::d6:192.168.0.1",
            "1:2::192.168.0.1",
            "::ffff:192.168.0.1",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "1:2:3:4:5:6:1.2.3.4",
            "1::3:4:5:6:7:8",
        ],
        &[
            "12345::",
            "1:1:1:1:1:1:1:1:1:1:1:1:1:1:1:1",
            "::laptop",
            ":2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7:",
            ":2:3:4::8",
            "1::d6::42",
            "1::2:192.168.256.1",
            "1::2:192.168.ff.1",
            "1:2:3:4:5:::8",
            "1:2:3:4:5:6:7",
            "1",
            "127.0.0.1",
            "1:2:3:4:1.2.3",
            "fe80::/64",
            "fe80::a%eth1",
            "1:2:3:4:5:6:7::8",
            "1:2:3:4:5:6:7:1.2.3.4",
            " ::1",
        ],
    ),
    (
        Format::Uri,
        &[
            "http://foo.bar/?baz=qux#quuz",
            "http://foo.com/blah_(wikipedia)_blah#cite-1",
            "http://foo.bar/?q=Test%20URL-encoded%20stuff",
            "http://xn--nw2a.xn--j6w193g/",
            "http://-.~_!$&'()*+,;=:%40:80%2f::::::@example.com",
            "http://223.255.255.254",
            "ftp://ftp.is.co.za/rfc/rfc1808.txt",
            "ldap://[2001:db8::7]/c=GB?objectClass?one",
            "mailto:John.Doe@example.com",
            "news:comp.infosystems.www.servers.unix",
            "tel:+1-816-555-1212",
            "urn:oasis:names:specification:docbook:dtd:xml:4.1.2",
            "a:",
            "http://[v1.a:b]:80",
        ],
        &[
            "//foo.bar/?baz=qux#quuz",
            "/abc",
            "\\\\WINDOWS\\fileshare",
            "abc",
            "http:// shouldfail.com",
            ":// should fail",
            "bar,baz:foo",
            "https://[@example.org/test.txt",
            "https://example.org/foobar\\.txt",
            "https://example.org/foobar<>.txt",
            "https://example.org/foobar{}.txt",
            "https://example.org/foobar^.txt",
            "https://example.org/foobar`.txt",
            "https://example.org/foo bar.txt",
            "https://example.org/foobar|.txt",
            "http://a:80x",
            "http://[::1",
            "http://a%2",
            "http://é.com",
            "http://a#b#c",
        ],
    ),
    (
        Format::UriReference,
        &[
            "http://foo.bar/?baz=qux#quuz",
            "//foo.bar/?baz=qux#quuz",
            "/abc",
            "abc",
            "#fragment",
            "",
            "?q",
            "a/b:c",
            "./a:b",
        ],
        &["\\\\WINDOWS\\fileshare", "#frag\\ment", "1a:b", "a b", "//a:b:c"],
    ),
    (
        Format::Iri,
        &[
            "http://ƒøø.ßår/?∂éœ=πîx#πîüx",
            "http://ƒøø.com/blah_(wîkïpédiå)_blah#ßité-1",
            "http://[2001:0db8:85a3:0000:0000:8a2e:0370:7334]",
        ],
        &[
            "http://2001:0db8:85a3:0000:0000:8a2e:0370:7334",
            "/abc",
            "\\\\WINDOWS\\filëßåré",
            "âππ",
            "http://a b",
        ],
    ),
    (
        Format::IriReference,
        &["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "//ƒøø.ßår/?∂éœ=πîx#πîüx", "/âππ", "âππ", "#ƒrägmênt"],
        &["\\\\WINDOWS\\filëßåré", "#ƒräg\\mênt"],
    ),
    (
        Format::Uuid,
        &[
            "2EB8AA08-AA98-11EA-B4AA-73B441D16380",
            "2eb8aa08-aa98-11ea-b4aa-73b441d16380",
            "00000000-0000-0000-0000-000000000000",
        ],
        &[
            "2eb8aa08-aa98-11ea-b4aa-73b441d1638",
            "2eb8aa08-aa98-11ea-73b441d16380",
            "2eb8aa08-aa98-11ea-b4ga-73b441d16380",
            "2eb8aa08aa9811eab4aa73b441d16380",
            "2eb8-aa08-aa98-11ea-b4aa73b44-1d16380",
        ],
    ),
    (
        Format::UriTemplate,
        &[
            "http://example.com/dictionary/{term:1}/{term}",
            "http://example.com/dictionary",
            "dictionary/{term:1}/{term}",
            "{?q,lang}{&x*}",
            "{+a.b}",
            "",
        ],
        &[
            "http://example.com/dictionary/{term:1}/{term",
            "{}",
            "{a:0}",
            "{a:12345}",
            "}",
            "a b",
            "%2",
            "{a..b}",
        ],
    ),
    (
        Format::JsonPointer,
        &["/foo/bar~0/baz~1/%a", "", "/", "/foo//bar", "/foo/bar/", "/a b\n\"", "/~1.1", "/🙂"],
        &["/foo/bar~", "/~0~", "#", "a", "#/a", "/~2", "/~-1"],
    ),
    (
        Format::RelativeJsonPointer,
        &["1", "0/foo/bar", "2/0/baz/1/zip", "0#", "120/foo"],
        &["/foo/bar", "-1/foo/bar", "+1/foo/bar", "0##", "01/a", "01#", "", "1a"],
    ),
    (
        Format::Regex,
        &[
            "([abc])+\\s+$",
            "^a{1,3}?$",
            "a|b|",
            "(?:a(b(c)))*",
            "(?=x)y(?<!z)",
            "[^a-z0-9_-]",
            "\\d{3}-\\u00e9",
            "",
            "[]",
            "é.+",
        ],
        &[
            "^(abc]", "a**", "(", ")", "[z-a]", "a{2,1}", "*", "\\", "(?<a", "[a", "a{", "(?=a)*",
            "\\a",
        ],
    ),
];

#[test]
fn what_has_which_format() {
    for (format, accepted, rejected) in CASES {
        let language = language(format);
        for text in accepted {
            // A leap second with an offset of half an hour is one of the things left out.
            let left_out = text.starts_with("01:29:60");
            assert_eq!(language.accepts(text), !left_out, "{} {text}", format.name());
        }
        for text in rejected {
            assert!(!language.accepts(text), "{} {text}", format.name());
        }
    }
}

#[test]
fn every_day_of_the_calendar() {
    let language = language(Format::Date);
    for year in 0..=9999 {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        assert_eq!(language.accepts(&format!("{year:04}-02-29")), leap, "{year}");
    }
    for month in 0..=13 {
        let days = match month {
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1..=12 => 31,
            _ => 0,
        };
        for day in 0..=32 {
            let text = format!("2023-{month:02}-{day:02}");
            assert_eq!(language.accepts(&text), (1..=days).contains(&day), "{text}");
        }
    }
}

#[test]
fn addresses_are_those_of_the_standard_library() {
    let (four, six) = (language(Format::Ipv4), language(Format::Ipv6));
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..20_000 {
        let parts = random.usize(1..10);
        let mut text = String::new();
        for part in 0..parts {
            text.push_str(
                ["", "", "0", "1", "ab", "12Fe", "1.2.3.4", "255.0.10.256"][random.usize(0..8)],
            );
            if part + 1 < parts || random.u8(0..5) == 0 {
                text.push(':');
            }
        }
        assert_eq!(six.accepts(&text), text.parse::<core::net::Ipv6Addr>().is_ok(), "{text}");
        let quad: Vec<String> = (0..4).map(|_| random.u16(0..300).to_string()).collect();
        let quad = quad.join(".");
        assert_eq!(four.accepts(&quad), quad.parse::<core::net::Ipv4Addr>().is_ok(), "{quad}");
    }
}

#[test]
fn automata_stay_small() {
    for format in Format::ALL {
        let states = language(format).states().len();
        let most = match format {
            Format::Email | Format::IdnEmail | Format::Regex => 3_000,
            Format::Hostname | Format::IdnHostname => 1_500,
            _ => 800,
        };
        assert!(states > 1 && states <= most, "{} has {states} states", format.name());
    }
}

#[test]
fn languages_are_made_once() {
    assert!(Arc::ptr_eq(&language(Format::Uuid), &language(Format::Uuid)));
    assert!(Format::Uuid.language(&mut Fuel::new(0)).is_err());
}
