//! Heads as browsers, tools, proxies and programs send them: fields, order and length differ, and with them the ways through a parser.

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Browser {
    /// Its fields before `Host` and after it, each with its line end.
    before: &'static str,
    after: &'static str,
    /// The codings that it takes.
    takes: &'static str,
}

/// Common ones, in the shapes that they have today; the texts are made up.
pub(super) const BROWSERS: &[Browser] = &[
    Browser {
        before: "",
        after: "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n\
                Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
                Accept-Language: en-GB,en;q=0.5\r\n\
                Connection: keep-alive\r\n\
                Cookie: session=7c1f0e52b8d94a63; theme=dark; consent=1\r\n\
                Upgrade-Insecure-Requests: 1\r\n\
                Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Site: same-origin\r\n\
                Priority: u=0, i\r\n",
        takes: "gzip, deflate, br, zstd",
    },
    Browser {
        before: "",
        after: "Connection: keep-alive\r\n\
                sec-ch-ua: \"Chromium\";v=\"140\", \"Not=A?Brand\";v=\"24\"\r\nsec-ch-ua-mobile: ?0\r\n\
                sec-ch-ua-platform: \"Windows\"\r\n\
                User-Agent: Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36\r\n\
                Accept: image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8\r\n\
                Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n\
                Referer: http://shop.example/catalogue?page=3&sort=price\r\n\
                Accept-Language: de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7\r\n\
                Cookie: _id=GS1.1.1763712000.4.1.1763712345.0.0.0; cart=3f9d2b7a-5c1e-4f0a-9d6b-0a1b2c3d4e5f; ab=B\r\n",
        takes: "gzip, deflate, br",
    },
    Browser {
        before: "",
        after: "Accept: */*\r\nSec-Fetch-Site: same-origin\r\nAccept-Language: fr-FR,fr;q=0.9\r\n\
                Sec-Fetch-Mode: cors\r\n\
                User-Agent: Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.6 Mobile/15E148 Safari/604.1\r\n\
                Connection: keep-alive\r\nSec-Fetch-Dest: empty\r\n",
        takes: "gzip, deflate",
    },
    Browser { before: "", after: "User-Agent: curl/8.14.1\r\nAccept: */*\r\n", takes: "" },
    Browser { before: "", after: "", takes: "" },
    Browser { before: "user-agent: tool/1.0\r\naccept: */*\r\n", after: "", takes: "gzip" },
    Browser {
        before: "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https\r\nX-Request-Id: 0f8fad5bd9cb469fa16570867728950e\r\n",
        after: "Connection: keep-alive\r\n\
                Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI3IiwiZXhwIjoxNzYzNzEyMDAwfQ.c2lnbmF0dXJlLW9mLW5vLXVzZS1hdC1hbGw\r\n\
                Accept: application/json\r\nUser-Agent: okhttp/5.1.0\r\n",
        takes: "gzip",
    },
];

impl Browser {
    /// All fields of a request to `host`, with what this one request has more.
    pub(super) fn fields(&self, host: &str, more: &str) -> String {
        let Self { before, after, takes } = self;
        let coding = if takes.is_empty() { String::new() } else { format!("Accept-Encoding: {takes}\r\n") };
        format!("{before}Host: {host}\r\n{after}{coding}{more}")
    }

    /// Whether it takes a coding.
    pub(super) fn takes(&self, coding: &str) -> bool {
        self.takes.split(", ").any(|taken| taken == coding)
    }
}

#[cfg(test)]
mod tests {
    use super::BROWSERS;

    #[test]
    fn heads_differ_and_each_is_well_formed() {
        let mut heads: Vec<String> =
            BROWSERS.iter().map(|browser| browser.fields("site.test", "More: 1\r\n")).collect();
        for head in &heads {
            assert_eq!(head.matches("Host: site.test\r\n").count(), 1);
            assert!(head.ends_with("More: 1\r\n"));
            assert!(head.split_terminator("\r\n").all(|line| line.contains(": ")), "{head}");
        }
        heads.sort();
        heads.dedup();
        assert_eq!(heads.len(), BROWSERS.len());
    }
}
