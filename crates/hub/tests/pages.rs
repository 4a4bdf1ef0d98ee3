//! The pages over HTTP, as a browser without JavaScript uses them.
#![allow(clippy::unwrap_used)]

mod support;

use potluck_core::learn::{Level, Ridge};
use potluck_fixtures::clinics;
use potluck_hub::Store;
use potluck_hub::config::Options;
use potluck_release::findings::HEADING;
use potluck_release::fit::{DEFAULT_RIDGE, Regression, fit};
use potluck_release::model::Learner;
use potluck_release::{PublicDataset, people};
use support::{Hub, STUDY, sealed, sealed_with};
use ureq::Agent;

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// A page that arrived.
struct Seen {
    status: u16,
    headers: ureq::http::HeaderMap,
    html: String,
}

impl Seen {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Checks what holds of every page.
    #[track_caller]
    fn sound(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.html);
        assert_eq!(self.header("content-security-policy"), POLICY);
        assert_eq!(self.header("content-type"), "text/html; charset=utf-8");
        assert_eq!(self.html.matches("<h1").count(), 1, "one main heading");
        assert_eq!(self.html.matches("<main").count(), 1);
        assert!(!self.html.contains(" style="), "an inline style");
        assert_eq!(self.html.matches("<script").count(), 1, "a script of its own only");
        assert!(self.html.contains("<script src=\"/assets/hub-"));
        for handler in [" onclick=", " onload=", "javascript:", "<style"] {
            assert!(!self.html.contains(handler), "{handler}");
        }
        self
    }

    #[track_caller]
    fn says(&self, words: &str) {
        assert!(self.html.contains(words), "no {words:?} in {}", self.html);
    }

    /// The value of the first field of this name.
    #[track_caller]
    fn field(&self, name: &str) -> String {
        let at = self.html.find(&format!("name=\"{name}\"")).unwrap_or_else(|| panic!("no field {name}"));
        let tag = &self.html[at..at + self.html[at..].find('>').unwrap()];
        let value = tag.split_once("value=\"").unwrap().1;
        value[..value.find('"').unwrap()].to_owned()
    }
}

/// Somebody who reads pages and sends forms, with the cookie that they were given.
struct Browser<'a> {
    hub: &'a Hub,
    agent: Agent,
    cookie: Option<String>,
}

impl<'a> Browser<'a> {
    fn new(hub: &'a Hub) -> Self {
        // A refused form may end its connection: the next request takes a new one.
        let agent =
            Agent::config_builder().http_status_as_error(false).max_redirects(0).max_idle_connections(0);
        let agent = agent.build().into();
        Self { hub, agent, cookie: None }
    }

    /// Somebody who has signed in with this token.
    fn signed_in(hub: &'a Hub, token: &str) -> Self {
        let mut browser = Self::new(hub);
        let seen = browser.post("/sign-in", &[("token", token)]);
        assert_eq!(seen.status, 303);
        let cookie = seen.header("set-cookie").to_owned();
        browser.cookie = Some(cookie.split(';').next().unwrap().to_owned());
        browser
    }

    fn get(&self, path: &str) -> Seen {
        let mut request = self.agent.get(self.hub.url.clone() + path);
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        see(request.call().unwrap())
    }

    fn post(&self, path: &str, fields: &[(&str, &str)]) -> Seen {
        self.post_with(path, fields, &[])
    }

    fn post_with(&self, path: &str, fields: &[(&str, &str)], headers: &[(&str, &str)]) -> Seen {
        let mut request = self.agent.post(self.hub.url.clone() + path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(cookie) = &self.cookie {
            request = request.header("cookie", cookie);
        }
        see(request.send_form(fields.iter().copied()).unwrap())
    }
}

fn see(mut response: ureq::http::Response<ureq::Body>) -> Seen {
    Seen {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        html: response.body_mut().read_to_string().unwrap(),
    }
}

#[test]
fn every_page_is_sound_and_says_what_it_should() {
    let hub = Hub::start();
    let browser = Browser::new(&hub);
    browser.get("/").sound(200).says("The table is laid");
    let waiting = hub.create(&sealed_with(&STUDY, 9), false);
    let members = hub.finished(&sealed(&STUDY));
    let (id, waiting) = (members[0].study.id(), waiting[0].study.id());

    let list = browser.get("/studies").sound(200);
    list.says(&format!("href=\"/studies/{id}\""));
    for words in ["three clinics", "Dataset available", "Waiting for acceptances", "1000"] {
        list.says(words);
    }
    let study = browser.get(&format!("/studies/{id}")).sound(200);
    let dataset = hub.get(&format!("/api/v1/studies/{id}")).json()["dataset_file"]["file"]["sha256"].clone();
    for words in [
        id,
        dataset.as_str().unwrap(),
        "18 to 100",
        "years",
        "no</bdi>, <bdi>yes",
        "Both releases together",
        "accepted the study and registered its key",
        &format!("potluck hub get {}/studies/{id} --out public.parquet", hub.url),
        &members[0].key.public().to_string(),
        "Do not regress on its rows",
        "potluck.PublicDataset.load(",
        "<svg",
    ] {
        study.says(words);
    }
    let early = browser.get(&format!("/studies/{waiting}")).sound(200);
    early.says("No party has released yet");
    early.says(&format!("potluck party accept {}/studies/{waiting}", hub.url));
    browser.get(&format!("/studies/{waiting}/explore")).sound(200).says("Nothing to explore yet");
    browser.get(&format!("/studies/{id}/explore")).sound(200).says("What would you like to explain?");
    browser.get("/sign-in").sound(200);
    assert_eq!(browser.get("/studies/new").header("location"), "/sign-in?next=/studies/new");
}

#[test]
fn a_study_that_makes_a_party_refuse_is_shown_with_a_warning() {
    let hub = Hub::start();
    let browser = Browser::new(&hub);
    let (warning, levels) =
        ("<p class=\"warning\"><strong>Careful: </strong>this study makes", "levels = [\"no\", \"yes\"]\n");
    let strict = STUDY.replace(levels, &format!("{levels}unknown = \"error\"\n"));
    assert_ne!(strict, *STUDY);
    let study = |text: &str, key: u8| {
        let members = hub.create(&sealed_with(text, key), false);
        browser.get(&format!("/studies/{}", members[0].study.id())).sound(200)
    };
    let strict = study(&strict, 8);
    for words in [warning, "refuse its table", "; never any other"] {
        strict.says(words);
    }
    let plain = study(&STUDY, 9);
    plain.says("; others count as missing");
    assert!(!plain.html.contains(warning));
    // What `plan` warns of is said here too, in the same words.
    let large = study(&STUDY.replace("epsilon = 1.0", "epsilon = 12.0"), 10);
    large.says("<strong>Careful: </strong>ε is large: a release may let anyone recognise people");
    assert!(!plain.html.contains("ε is large"));
}

#[test]
fn assets_are_named_after_their_content_and_kept() {
    let hub = Hub::start();
    let browser = Browser::new(&hub);
    let page = browser.get("/").html;
    for (before, kind) in [
        ("href=\"/assets/hub-", "text/css"),
        ("src=\"/assets/hub-", "text/javascript"),
        ("href=\"/assets/icon-", "image/svg+xml"),
    ] {
        let at = page.find(before).unwrap() + before.find('/').unwrap();
        let address = &page[at..at + page[at..].find('"').unwrap()];
        let asset = browser.get(address);
        assert_eq!(asset.status, 200);
        assert!(asset.header("content-type").starts_with(kind));
        assert_eq!(asset.header("cache-control"), "public, max-age=31536000, immutable");
    }
    assert_eq!(browser.get("/assets/hub-0000000000000000.css").status, 404);
}

const HOSTILE: &str = r#"
format = 1
[study]
name = "<script>alert(1)</script> \"quoted\" 'name'"
rows = 1000
id = "integer"
method = "rmgm"
k = 60
[privacy]
epsilon = 1.0
delta = 1e-5
[[party]]
name = "north"
[[party.column]]
name = "\"><script>alert(2)</script>"
lo = 18
hi = 100
unit = "<script>alert(3)</script>"
description = "'\"><img src=x onerror=alert(4)>"
[[party.column]]
name = "home"
levels = ["<script>alert(5)</script>", "\" autofocus onfocus=\"alert(6)", "a,b"]
[[party]]
name = "south"
[[party.column]]
name = "pressure"
lo = 80
hi = 200
unit = "</textarea><script>alert(7)</script>"
"#;

#[test]
fn names_from_strangers_are_only_text() {
    let hub = Hub::start_with(Options {
        name: Some("<script>alert(0)</script>".to_owned()),
        requests_per_minute: Some(0),
        ..Options::default()
    });
    let id = hub.finished(&sealed(HOSTILE))[0].study.id().to_owned();
    let browser = Browser::signed_in(&hub, &hub.coordinator);
    let strange = "/studies/%3Cscript%3Ealert(8)%3C/script%3E".to_owned();
    let explore = format!("/studies/{id}/explore");
    for (path, status) in [
        ("/".to_owned(), 200),
        (format!("/studies/{id}"), 200),
        (explore.clone(), 200),
        (format!("{explore}?label=pressure"), 200),
        (format!("{explore}?label=home%3Da%2Cb&feature=pressure"), 200),
        (format!("{explore}?label=%3Cscript%3Ealert(9)%3C/script%3E&feature=%22%3E%3Cscript%3Ex"), 422),
        (format!("{explore}?label=pressure&learner=%3Cscript%3E&level=%22%3E%3Cscript%3E"), 422),
        ("/sign-in?next=%22%3E%3Cscript%3Ealert(10)%3C/script%3E".to_owned(), 200),
        (strange, 404),
    ] {
        let seen = browser.get(&path).sound(status);
        assert!(!seen.html.contains("<script>"), "{path}");
        assert!(!seen.html.contains("<img"), "{path}");
        assert!(!seen.html.contains("\" autofocus onfocus"), "{path}");
    }
    let secret = browser.get("/studies/new").sound(200).field("form_secret");
    let form = browser.post(
        "/studies/new",
        &[
            ("form_secret", &secret),
            ("name", "\"><script>alert(11)</script>"),
            ("party-0-column-0-kind", "levels"),
            ("party-0-column-0-levels", "</textarea><script>alert(12)</script>"),
            ("sealed", "</textarea><script>alert(13)</script>"),
            ("action", "create-sealed"),
        ],
    );
    assert!(!form.sound(422).html.contains("<script>"));
}

/// The text between the tags of a page.
fn text_of(html: &str) -> String {
    html.split('<').filter_map(|piece| piece.split_once('>')).map(|(_, text)| text).collect()
}

#[test]
fn explored_regressions_are_those_of_the_library() {
    let hub = Hub::start();
    let id = hub.finished(&sealed(&STUDY))[0].study.id().to_owned();
    let file = hub.folder.path().join("public.parquet");
    std::fs::write(&file, hub.get(&format!("/api/v1/studies/{id}/dataset")).body).unwrap();
    let dataset = PublicDataset::read(&file).unwrap();
    let browser = Browser::new(&hub);
    let mut found = 0;
    for (query, features, learner, level) in [
        ("label=pressure", None, Learner::Posterior, 0.95),
        ("label=pressure&feature=age", Some(vec!["age".to_owned()]), Learner::Posterior, 0.95),
        (
            "label=pressure&feature=smoker&feature=age&learner=ols&level=0.8",
            Some(vec!["smoker".to_owned(), "age".to_owned()]),
            Learner::Ols,
            0.8,
        ),
    ] {
        let model = fit(
            &dataset,
            &Regression {
                label: "pressure".to_owned(),
                features,
                kind: potluck_release::model::Kind::Linear,
                learner,
                ridge: Ridge::new(DEFAULT_RIDGE).unwrap(),
                level: Level::new(level).unwrap(),
            },
        )
        .unwrap();
        let seen = browser.get(&format!("/studies/{id}/explore?{query}")).sound(200);
        for coefficient in &model.coefficients {
            for number in [coefficient.value.estimate, coefficient.value.low, coefficient.value.high] {
                seen.says(&format!("<data value=\"{number:?}\">"));
            }
        }
        let before = seen.html.find("<data ").unwrap();
        for said in model.findings() {
            found += 1;
            assert!(
                text_of(&seen.html[..before]).contains(&said.sentence.to_string()),
                "{said:?} comes late"
            );
        }
        assert_eq!(seen.html.contains(HEADING), !model.findings().is_empty());
        seen.says(&format!("{}/studies/{id}/explore?{}", hub.url, query.replace('&', "&amp;")));
        let file = browser.get(&format!("/studies/{id}/model.json?{query}"));
        assert_eq!((file.status, file.html.trim()), (200, model.to_json().trim()));
        assert_eq!(file.header("content-disposition"), "attachment; filename=\"model.json\"");
    }
    assert!(found > 0, "made-up sums of few people have findings");
    let seen = browser.get(&format!("/studies/{id}/explore?label=pressure&feature=age&level=0.8"));
    seen.says("with urlopen(&quot;http://127.0.0.1:");
    seen.says("(&quot;label&quot;, &quot;pressure&quot;), (&quot;feature&quot;, &quot;age&quot;), (&quot;level&quot;, 0.8)");
    seen.says("potluck fit public.parquet --label pressure --features age --level 0.8");
}

#[test]
fn odds_and_correlations_are_explored_too() {
    let hub = Hub::start();
    let text = clinics("odds", 1000).settings("k = 40").to_string();
    let id = hub.finished(&sealed(&text))[0].study.id().to_owned();
    let browser = Browser::new(&hub);
    let odds = browser.get(&format!("/studies/{id}/explore?label=smoker&model=logistic")).sound(200);
    odds.says("Logistic regression of");
    odds.says("Odds ratios");
    odds.says("Area under the curve");
    odds.says("potluck.LogisticRegression()");
    odds.says("--label smoker --model logistic");
    odds.says("(&quot;model&quot;, &quot;logistic&quot;)");
    let number = browser.get(&format!("/studies/{id}/explore?label=pressure&model=logistic")).sound(422);
    number.says("only a label with levels has odds");
    browser
        .get(&format!("/studies/{id}/explore?label=smoker&model=cubic"))
        .sound(422)
        .says("model is linear or logistic");
    browser.get(&format!("/studies/{id}/explore")).sound(200).says(&format!("/studies/{id}/correlations"));

    let page = browser.get(&format!("/studies/{id}/correlations")).sound(200);
    page.says("<svg");
    page.says("potluck correlate public.parquet");
    let some = browser
        .get(&format!("/studies/{id}/correlations?column=age&column=pressure&given=smoker&together=true"));
    some.sound(200).says("Partial correlations");
    browser.get(&format!("/studies/{id}/correlations?column=age")).sound(422).says("at least two");
    browser.get("/studies/none/correlations").sound(404);
    let api: serde_json::Value = serde_json::from_slice(
        &hub.get(&format!("/api/v1/studies/{id}/correlations?column=age&column=pressure")).body,
    )
    .unwrap();
    assert_eq!(api["pairs"].as_array().unwrap().len(), 1);
    assert!(api["pairs"][0]["low"].as_f64().unwrap() <= api["pairs"][0]["high"].as_f64().unwrap());
}

#[test]
fn releases_of_different_people_are_taken_and_pages_say_first_who_is_where() {
    let text = clinics("cohorts", 1000).of_cohorts().settings("k = 40").to_string();
    let hub = Hub::start();
    let id = hub.finished(&sealed(&text))[0].study.id().to_owned();
    let file = hub.folder.path().join("public.parquet");
    std::fs::write(&file, hub.get(&format!("/api/v1/studies/{id}/dataset")).body).unwrap();
    let dataset = PublicDataset::read(&file).unwrap();
    assert_eq!(dataset.columns().names().last().unwrap(), "present@south");
    let people = people::of_dataset(&dataset).unwrap().unwrap();
    let alarms: Vec<String> = people.alarms().iter().map(ToString::to_string).collect();
    assert_eq!(alarms.len(), 1, "made-up sums have nobody in common for certain");

    let browser = Browser::new(&hub);
    let seen = browser.get(&format!("/studies/{id}")).sound(200);
    let head = &seen.html[..seen.html.find("class=\"facts\"").unwrap()];
    assert!(text_of(head).contains(&alarms[0]), "{}", text_of(head));
    for said in ["Who is where", "People of a party, about", "Missing values", "How values are distributed"] {
        seen.says(said);
    }
    let seen = browser.get(&format!("/studies/{id}/explore?label=pressure")).sound(200);
    let model = fit(&dataset, &Regression::of("pressure")).unwrap();
    let first = model.findings()[0].sentence.to_string();
    assert!(model.findings()[0].is_about_people(), "{first}");
    let outcome = &seen.html[seen.html.find("Regression of").unwrap()..];
    let words = text_of(&outcome[..outcome.find("<dl").unwrap()]);
    let found = words.find(&first).unwrap();
    assert!(found < words.find("coefficients").unwrap_or(words.len()), "{words}");
}

#[test]
fn a_regression_that_cannot_be_is_explained_and_the_choice_is_kept() {
    let hub = Hub::start();
    let id = hub.finished(&sealed(&STUDY))[0].study.id().to_owned();
    let browser = Browser::new(&hub);
    for (query, words) in [
        ("label=age&feature=age", "both the label and a feature"),
        ("label=height&feature=age", "no column &quot;height&quot;"),
        ("label=pressure&feature=weight", "no column &quot;weight&quot;"),
        ("label=pressure&feature=age&level=2", "level"),
        ("label=pressure&feature=age&level=high", "such as 0.95, or a percentage, such as 95%"),
        ("label=pressure&feature=age&learner=magic", "learner is posterior, debiased or ols"),
        ("label=pressure&feature=age&feature=age", "named twice"),
    ] {
        let seen = browser.get(&format!("/studies/{id}/explore?{query}")).sound(422);
        seen.says(words);
        seen.says("This regression cannot be fitted.");
        for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
            if name != "learner" || value != "posterior" {
                seen.says(&format!("value=\"{value}\""));
            }
        }
    }
    let model = |level: &str| {
        let path = format!("/studies/{id}/model.json?label=pressure&feature=age&level={level}");
        browser.get(&path).html
    };
    assert_eq!(model("90%25"), model("0.9"), "a percentage is a level too");
    assert_ne!(model("90%25"), model("0.95"));
    assert_eq!(browser.get(&format!("/studies/{id}/model.json?label=age&feature=age")).status, 422);
    assert_eq!(browser.get("/studies/none/explore?label=age").sound(404).status, 404);
}

#[test]
fn coordinators_sign_in_and_out() {
    let hub = Hub::start();
    let browser = Browser::new(&hub);
    for wrong in ["", "plc_0000", "admin"] {
        let seen = browser.post("/sign-in", &[("token", wrong)]).sound(403);
        assert_eq!(seen.header("set-cookie"), "");
        seen.says("That did not work.");
    }
    let seen = browser.post("/sign-in", &[("token", &hub.coordinator), ("next", "/studies/new")]);
    assert_eq!((seen.status, seen.header("location")), (303, "/studies/new"));
    let cookie = seen.header("set-cookie");
    assert!(cookie.starts_with("potluck-session=pls_"), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    for elsewhere in ["//evil.example", "https://evil.example/", "/\\evil.example"] {
        let seen = browser.post("/sign-in", &[("token", &hub.coordinator), ("next", elsewhere)]);
        assert_eq!(seen.header("location"), "/studies");
    }

    let browser = Browser::signed_in(&hub, &hub.coordinator);
    let page = browser.get("/studies/new").sound(200);
    page.says("Sign out <bdi>ada</bdi>");
    assert_eq!(page.header("cache-control"), "private, no-cache");
    assert_eq!(browser.post("/sign-out", &[]).sound(403).header("set-cookie"), "", "without the secret");
    let out = browser.post("/sign-out", &[("form_secret", &page.field("form_secret"))]);
    assert_eq!(out.status, 303);
    assert!(out.header("set-cookie").ends_with("; Max-Age=0"));
    assert_eq!(browser.get("/studies/new").status, 303, "the session is over at the hub too");
}

#[test]
fn cookies_are_bound_to_https_where_there_is_https() {
    let hub = Hub::start_with(Options {
        public_url: Some("https://hub.example.org".to_owned()),
        requests_per_minute: Some(0),
        ..Options::default()
    });
    let seen = Browser::new(&hub).post("/sign-in", &[("token", &hub.coordinator)]);
    let cookie = seen.header("set-cookie");
    assert!(cookie.starts_with("__Host-potluck-session=pls_"), "{cookie}");
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
    let trusted = [("origin", "https://hub.example.org"), ("sec-fetch-site", "same-site")];
    assert_eq!(
        Browser::new(&hub).post_with("/sign-in", &[("token", &hub.coordinator)], &trusted).status,
        303
    );
}

#[test]
fn forms_from_elsewhere_are_refused() {
    let hub = Hub::start();
    let id = hub.create(&sealed(&STUDY), false)[0].study.id().to_owned();
    let browser = Browser::signed_in(&hub, &hub.coordinator);
    let secret = browser.get("/studies/new").field("form_secret");
    let invite = format!("/studies/{id}/parties/north/invitation");
    let closing = format!("/studies/{id}/closing");
    for path in ["/studies/new", &invite, &closing, "/sign-out", "/sign-in"] {
        let fields = [("form_secret", secret.as_str()), ("token", &hub.coordinator), ("action", "plan")];
        for headers in [
            &[("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")][..],
            &[("sec-fetch-site", "same-site")],
            &[("origin", "https://evil.example")],
            &[("origin", "null")],
        ] {
            let seen = browser.post_with(path, &fields, headers).sound(403);
            assert_eq!(seen.header("set-cookie"), "");
            seen.says("sent from another site");
        }
    }
    for path in ["/studies/new", &invite, &closing, "/sign-out"] {
        for fields in [&[][..], &[("form_secret", "0")], &[("form_secret", &*"0".repeat(64))]] {
            browser.post(path, fields).sound(403).says("does not belong to your session");
        }
        Browser::new(&hub).post(path, &[("form_secret", &secret)]).sound(403).says("not signed in");
    }
    let events = hub.get(&format!("/api/v1/studies/{id}/events")).json();
    assert_eq!(events["events"].as_array().unwrap().len(), 3, "nothing happened");
    // The same requests from the hub's own pages are taken.
    let own = [("sec-fetch-site", "same-origin"), ("origin", hub.url.as_str())];
    browser.post_with(&invite, &[("form_secret", &secret)], &own).sound(201);
}

const FILLED: [(&str, &str); 17] = [
    ("form", "one"),
    ("name", "blood \"pressure\""),
    ("rows", "200,000"),
    ("id", "integer"),
    ("epsilon", "1"),
    ("delta", "0.00001"),
    ("method", "calibrated"),
    ("party-0-name", "north"),
    ("party-0-column-0-name", "age"),
    ("party-0-column-0-kind", "number"),
    ("party-0-column-0-lo", "18"),
    ("party-0-column-0-hi", "100"),
    ("party-0-column-0-unit", "years"),
    ("party-1-name", "south"),
    ("party-1-column-0-name", "smoker"),
    ("party-1-column-0-kind", "levels"),
    ("party-1-column-0-levels", "no\r\nyes"),
];

fn with<'a>(secret: &'a str, action: &'a str, change: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let kept = FILLED.iter().filter(|(name, _)| change.iter().all(|(other, _)| other != name)).copied();
    kept.chain(change.iter().copied()).chain([("form_secret", secret), ("action", action)]).collect()
}

#[test]
fn a_study_is_created_step_by_step_without_javascript() {
    let hub = Hub::start();
    let browser = Browser::signed_in(&hub, &hub.coordinator);
    let blank = browser.get("/studies/new").sound(200);
    let secret = blank.field("form_secret");
    assert_eq!(blank.field("form").len(), 64);

    let more = browser.post("/studies/new", &with(&secret, "add-party", &[])).sound(200);
    assert_eq!(more.field("party-2-name"), "");
    assert_eq!(more.field("party-0-column-0-lo"), "18");
    assert_eq!(more.field("name"), "blood &quot;pressure&quot;");
    more.says("no\nyes</textarea>");
    let fewer = browser.post("/studies/new", &with(&secret, "remove-party-0", &[])).sound(200);
    assert_eq!(fewer.field("party-0-name"), "south");
    let wider = browser.post("/studies/new", &with(&secret, "add-column-1", &[])).sound(200);
    wider.says("name=\"party-1-column-1-name\" type=\"text\" value=\"\" autocomplete=\"off\" autofocus");

    let planned = browser.post("/studies/new", &with(&secret, "plan", &[])).sound(200);
    for words in ["Useful", "ε = 1.4", "Smallest useful study", "Noise share"] {
        planned.says(words);
    }
    let refused = browser
        .post("/studies/new", &with(&secret, "create", &[("rows", "many"), ("party-0-column-0-hi", "")]))
        .sound(422);
    refused.says("<p class=\"problem\" id=\"rows-problem\">");
    refused.says("href=\"#party-0-column-0-hi\"");
    assert_eq!(refused.field("rows"), "many");
    assert_eq!(refused.field("party-1-name"), "south");
    // What single fields and what the whole study says is marked at once.
    let change = [("epsilon", "much"), ("delta", "2"), ("party-1-column-0-name", "age")];
    let refused = browser.post("/studies/new", &with(&secret, "create", &change)).sound(422);
    for field in ["epsilon", "delta", "party-1-column-0-name"] {
        refused.says(&format!("id=\"{field}-problem\""));
    }

    let created = browser.post("/studies/new", &with(&secret, "create", &[("early", "on")])).sound(201);
    assert_eq!(created.header("cache-control"), "no-store");
    let studies = hub.get("/api/v1/studies").json();
    let id = studies["studies"][0]["id"].as_str().unwrap().to_owned();
    created.says(&format!(
        "potluck party accept {}/studies/{id} --token-file north.invitation --signing-key north.key",
        hub.url
    ));
    assert_eq!(created.html.matches("plp_").count(), 4, "two tokens, each shown and to be copied");
    assert_eq!(hub.get(&format!("/api/v1/studies/{id}")).json()["early"], true);
    let token = &created.html[created.html.find("plp_").unwrap()..][..68];
    let whose = hub.get_with(
        &format!("/api/v1/studies/{id}/invitation"),
        &[("authorization", &format!("Bearer {token}"))],
    );
    assert_eq!(whose.json()["party"], "north");

    // The same form again, as after pressing the button twice or loading the page again.
    let again = browser.post("/studies/new", &with(&secret, "create", &[("early", "on")])).sound(200);
    again.says("was created before");
    assert_eq!(hub.get("/api/v1/studies").json()["studies"].as_array().unwrap().len(), 1);
    // Another form with the same content is another study: its mixing key is its own.
    browser.post("/studies/new", &with(&secret, "create", &[("form", "two")])).sound(201);
    assert_eq!(hub.get("/api/v1/studies").json()["studies"].as_array().unwrap().len(), 2);
}

#[test]
fn a_sealed_study_can_be_pasted() {
    let hub = Hub::start();
    let browser = Browser::signed_in(&hub, &hub.coordinator);
    let secret = browser.get("/studies/new").field("form_secret");
    let text = sealed(&STUDY);
    for wrong in ["", "nonsense", &text.replace("rows = 1000", "rows = 2000"), &STUDY] {
        let seen =
            browser.post("/studies/new", &with(&secret, "create-sealed", &[("sealed", wrong)])).sound(422);
        seen.says("id=\"sealed-problem\"");
        assert_eq!(seen.field("party-0-name"), "north", "what was typed above is kept");
    }
    let wrong = text.replacen("rows = 1000", "rows = -1", 1).replacen("hi = ", "high = ", 1);
    let seen =
        browser.post("/studies/new", &with(&secret, "create-sealed", &[("sealed", &wrong)])).sound(422);
    seen.says("study.rows: is a number below 0;");
    seen.says("did you mean hi?");
    let seen = browser.post("/studies/new", &with(&secret, "create-sealed", &[("sealed", &text)])).sound(201);
    assert_eq!(seen.html.matches("plp_").count(), 4);
    let id = hub.get("/api/v1/studies").json()["studies"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(hub.get(&format!("/api/v1/studies/{id}/study.toml")).text(), text);
}

#[test]
fn a_study_that_extends_another_takes_its_terms_and_shows_the_line() {
    let hub = Hub::start();
    let browser = Browser::signed_in(&hub, &hub.coordinator);
    let secret = browser.get("/studies/new").field("form_secret");
    browser.post("/studies/new", &with(&secret, "create", &[])).sound(201);
    let base = hub.get("/api/v1/studies").json()["studies"][0]["id"].as_str().unwrap().to_owned();
    let latecomer = [
        ("form", "two"),
        ("name", "with sleep"),
        ("rows", "5"),
        ("epsilon", "3"),
        ("extends", base.as_str()),
        ("party-0-name", "east"),
        ("party-0-column-0-name", "sleep"),
        ("party-1-name", "west"),
        ("party-1-column-0-name", "coffee"),
    ];
    let planned = browser.post("/studies/new", &with(&secret, "plan", &latecomer)).sound(200);
    assert_eq!((planned.field("rows").as_str(), planned.field("epsilon").as_str()), ("200000", "1"));
    planned.says("Privacy of all together");
    browser.post("/studies/new", &with(&secret, "create", &latecomer)).sound(201);
    let id = hub.get("/api/v1/studies").json()["studies"][0]["id"].as_str().unwrap().to_owned();
    let later = browser.get(&format!("/studies/{id}")).sound(200);
    later.says("Studies in the same line");
    later.says("with sleep</bdi> (this study)");
    later.says("of the study it extends");
    let first = browser.get(&format!("/studies/{base}")).sound(200);
    first.says(&format!("<a href=\"/studies/{id}\">extends this one</a>"));
    first.says("(this study)");
    browser
        .post("/studies/new", &with(&secret, "create", &[("extends", "unknown")]))
        .sound(422)
        .says("id=\"extends-problem\"");
}

#[test]
fn only_its_coordinator_invites_anew() {
    let hub = Hub::start();
    let members = hub.create(&sealed(&STUDY), false);
    let id = members[0].study.id();
    members[1].accept(&hub);
    let other = Store::open(&hub.data()).unwrap().add_coordinator("grace", false).unwrap();
    let (ada, grace) = (Browser::signed_in(&hub, &hub.coordinator), Browser::signed_in(&hub, other.reveal()));
    let path = format!("/studies/{id}");
    let page = ada.get(&path).sound(200);
    page.says("1 party has not accepted yet");
    page.says("New invitation<span class=\"unseen\"> for north</span>");
    assert!(!page.html.contains("for south</span></button>"), "who has accepted needs no invitation");
    assert!(!grace.get(&path).sound(200).html.contains("New invitation"));
    assert!(!Browser::new(&hub).get(&path).sound(200).html.contains("New invitation"));

    let invite = format!("{path}/parties/north/invitation");
    let secret = grace.get("/studies/new").field("form_secret");
    grace
        .post(&invite, &[("form_secret", &secret)])
        .sound(409)
        .says("Another coordinator created this study");
    let secret = page.field("form_secret");
    let fresh = ada.post(&invite, &[("form_secret", &secret)]).sound(201);
    assert_eq!(fresh.header("cache-control"), "no-store");
    let token = &fresh.html[fresh.html.find("plp_").unwrap()..][..68];
    assert_ne!(token, members[0].token);
    assert_eq!(members[0].accept(&hub).status, 401, "the invitation before is void");
    ada.post(&format!("{path}/parties/south/invitation"), &[("form_secret", &secret)]).sound(201);
    ada.post(&format!("{path}/parties/nobody/invitation"), &[("form_secret", &secret)]).sound(404);
}

#[test]
fn a_coordinator_undoes_an_acceptance_and_closes_the_study() {
    let hub = Hub::start();
    let members = hub.create(&sealed(&STUDY), false);
    let id = members[0].study.id();
    members[0].accept(&hub);
    let other = Store::open(&hub.data()).unwrap().add_coordinator("grace", false).unwrap();
    let (ada, grace) = (Browser::signed_in(&hub, &hub.coordinator), Browser::signed_in(&hub, other.reveal()));
    let path = format!("/studies/{id}");
    let page = ada.get(&path).sound(200);
    page.says("Undo acceptance<span class=\"unseen\"> of north</span>");
    page.says("Close this study");
    assert!(!grace.get(&path).sound(200).html.contains("Close this study"));
    let (secret, graces) = (page.field("form_secret"), grace.get("/studies/new").field("form_secret"));
    let invite = format!("{path}/parties/north/invitation");
    let undo = |secret| [("form_secret", secret), ("undo_acceptance", "true")];
    grace.post(&invite, &undo(&*graces)).sound(409).says("Another coordinator created this study");
    ada.post(&invite, &undo(&*secret)).sound(201).says("its acceptance is undone");
    ada.post(&invite, &undo(&*secret)).sound(409).says("nothing to undo");
    ada.get(&path).sound(200).says("2 parties have not accepted yet");
    ada.get(&path).sound(200).says("The coordinator undid the acceptance of");

    let closing = format!("{path}/closing");
    let reason = |secret| [("form_secret", secret), ("reason", " <b>wrong</b> bounds ")];
    grace.post(&closing, &reason(&*graces)).sound(409).says("Another coordinator created this study");
    let done = ada.post(&closing, &reason(&*secret));
    assert_eq!((done.status, done.header("location")), (303, path.as_str()));
    for browser in [&ada, &Browser::new(&hub)] {
        let page = browser.get(&path).sound(200);
        page.says("This study was closed");
        page.says("&lt;b&gt;wrong&lt;/b&gt; bounds");
        page.says("Nobody can: the study was closed.");
        assert!(!page.html.contains("potluck party accept") && !page.html.contains("Close this study"));
    }
    Browser::new(&hub).get("/studies").sound(200).says("Closed");
}

#[test]
fn refusals_are_pages_for_people_and_problems_for_programs() {
    let hub = Hub::start();
    let browser = Browser::new(&hub);
    browser.get("/nothing").sound(404).says("There is nothing here");
    browser.get("/studies/0000").sound(404).says("no study with that id");
    browser.post("/", &[("a", "b")]).sound(405).says("That does not work here");
    let large = "x".repeat(1 << 20);
    browser.post("/sign-in", &[("token", &large)]).sound(413).says("That is too much");
    browser.get("/studies?after=x").sound(400);
    assert!(!hub.get("/api/v1/studies/0000").refusal(404).is_empty());
    assert!(!hub.get("/api/nothing").refusal(404).is_empty());
    let quoted = Browser::new(&hub).agent.post(hub.url.clone() + "/sign-in").send_json("{}").unwrap();
    see(quoted).sound(415);

    let hurried = Hub::start_with(Options { requests_per_minute: Some(2), ..Options::default() });
    let browser = Browser::new(&hurried);
    let mut last = browser.get("/");
    while last.status == 200 {
        last = browser.get("/");
    }
    assert!(!last.header("retry-after").is_empty());
    last.sound(429).says("Slow down, please");
}

#[test]
fn long_lists_have_pages() {
    let hub = Hub::start();
    for key in 1..=25 {
        hub.create(&sealed_with(&STUDY, key), false);
    }
    let browser = Browser::new(&hub);
    let first = browser.get("/").sound(200);
    assert_eq!(first.html.matches("study-card").count(), 20);
    let at = first.html.find("/studies?after=").unwrap();
    let next = &first.html[at..at + first.html[at..].find('"').unwrap()];
    let second = browser.get(next).sound(200);
    assert_eq!(second.html.matches("study-card").count(), 5);
    second.says("Newest studies");
    browser.get("/studies?after=1").sound(200).says("No more studies");
}
