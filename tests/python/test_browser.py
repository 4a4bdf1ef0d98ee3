"""The hub's pages in headless Chromium: with and without JavaScript, on a phone and on a desk, in light and dark.

Debian's Chromium is driven (`apt-get install chromium`), so that no browser is downloaded."""

import json
import re
import urllib.parse
import urllib.request

import pytest
from axe_playwright_python.sync_playwright import Axe
from hub_process import Demo, Hub, potluck
from playwright.sync_api import expect, sync_playwright

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
DESK = {"width": 1280, "height": 900}
PHONE = {"width": 375, "height": 740}
STRANGE = """
format = 1
[study]
name = "<b>bold</b> & \\"quoted\\""
rows = 20000
id = "text"
[privacy]
epsilon = 1.0
delta = 1e-6
[[party]]
name = "a-party-with-a-name-as-long-as-a-name-can-possibly-become-here"
[[party.column]]
name = "a_column_whose_name_goes_on_and_on_without_any_place_to_break_the_line_and_then_some_more"
lo = -1e9
hi = 1e9
unit = "units of a very long name per square something"
description = "What it means takes more than a few words, and includes <script>alert(1)</script>."
[[party]]
name = "b"
[[party.column]]
name = "kind"
levels = ["one", "two", "three's \\"company\\"", "other"]
unknown = "other"
"""

LOOSE = """
format = 1
[study]
name = "loose bounds"
rows = 20000
id = "integer"
[privacy]
epsilon = 1.0
delta = 1e-6
[[party]]
name = "clinic"
[[party.column]]
name = "weight"
lo = 0
hi = 100
[[party.column]]
name = "height"
lo = 0
hi = 100
[[party.column]]
name = "debt"
lo = -1e6
hi = 1e6
"""
"""Noise hides how much a column varies whose bounds are ten thousand times too wide."""


def publish_loose(hub, folder):
    """Takes the study with loose bounds through a hub; returns its id."""
    study, table, key, release = (folder / name for name in ("loose.toml", "loose.csv", "loose.key", "loose.parquet"))
    study.write_text(LOOSE)
    potluck("study", "seal", study)
    people = range(20_000)
    rows = [f"{one},{one % 97},{one * 7919 % 89 + one % 97 / 10},{one % 101}" for one in people]
    table.write_text("\n".join(["id,weight,height,debt", *rows]) + "\n")
    potluck("key", "new", "--out", key)
    ledger = folder / "loose.ledger"
    potluck("ledger", "init", "--ledger", ledger, "--budget", "t", "--epsilon", 1, "--delta", 1e-6)
    potluck(
        "release", study, "--party", "clinic", "--data", table, "--ledger", ledger, "--signing-key", key, "--yes",
        "--accept-low-accuracy", "--out", release,
    )  # fmt: skip
    created, invitations = hub.create(study.read_text())
    hub.accept(created, "clinic", invitations["clinic"], key)
    hub.upload(created, "clinic", invitations["clinic"], release)
    return created


DATED = """
format = 1
[study]
name = "NAME"
rows = 20000
id = "integer"
[privacy]
epsilon = 1.0
delta = 1e-6
[[party]]
name = "registry"
[[party.column]]
name = "born"
lo = 1930-01-01
hi = 2010-12-31
[[party]]
name = "clinic"
[[party.column]]
name = "weight"
lo = 0
hi = 100
"""


def create_dated(hub, folder, name):
    """Creates a study with dates; returns its id."""
    draft = folder / f"{name}.toml"
    draft.write_text(DATED.replace("NAME", name))
    potluck("study", "seal", draft)
    return hub.create(draft.read_text())[0]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A hub with a finished study, one with findings, one under way, one with strange names and one that was closed."""
    folder = tmp_path_factory.mktemp("hub")
    demo = Demo(folder / "demo", rows=50_000)
    hub = Hub(folder, "--requests-per-minute", "0")
    hub.demo = demo
    hub.finished = demo.publish(hub)
    hub.loose = publish_loose(hub, folder)
    draft = folder / "strange.toml"
    draft.write_text(STRANGE)
    potluck("study", "seal", draft)
    hub.waiting, _ = hub.create(draft.read_text())
    hub.closed = create_dated(hub, folder, "births")
    hub.call("POST", f"/studies/{hub.closed}/closing", {"reason": "the first date was wrong"}, hub.token)
    yield hub
    hub.stop()


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()


class Tab:
    """A page that remembers what it asked for and what went wrong."""

    def __init__(self, browser, world, script=True, screen=DESK, scheme="light", signed_in=False):
        self.world = world
        self.context = browser.new_context(viewport=screen, color_scheme=scheme, java_script_enabled=script)
        self.page = self.context.new_page()
        self.faults = []
        self.hosts = set()
        self.page.on("request", lambda request: self.hosts.add(urllib.parse.urlsplit(request.url).netloc))
        self.page.on("console", lambda message: self.faults.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        if signed_in:
            self.sign_in()

    def open(self, path):
        return self.page.goto(self.world.address + path)

    def sign_in(self):
        self.open("/sign-in")
        self.page.get_by_label("Token").fill(self.world.token)
        self.page.get_by_role("button", name="Sign in").click()
        expect(self.page.get_by_role("button", name="Sign out")).to_be_visible()

    def close(self, expected=()):
        """Nothing was asked of another host, and nothing failed but what was expected to."""
        self.context.close()
        assert self.hosts <= {urllib.parse.urlsplit(self.world.address).netloc}
        unexpected = [fault for fault in self.faults if not any(part in fault for part in expected)]
        assert unexpected == []


def pages(world):
    """Every page by name: address, and whether it takes a coordinator."""
    explore = f"/studies/{world.finished}/explore"
    return {
        "studies": ("/", False),
        "no more studies": ("/studies?after=1", False),
        "finished study": (f"/studies/{world.finished}", False),
        "waiting study": (f"/studies/{world.waiting}", False),
        "own study": (f"/studies/{world.waiting}", True),
        "closed study": (f"/studies/{world.closed}", False),
        "own closed study": (f"/studies/{world.closed}", True),
        "explorer": (explore, False),
        "regression": (f"{explore}?label=pressure&feature=age&feature=salt&feature=smoker", False),
        "ols": (f"{explore}?label=pressure&feature=age&learner=ols", False),
        "odds": (f"{explore}?label=smoker&model=logistic&feature=age&feature=pressure", False),
        "correlations": (f"/studies/{world.finished}/correlations", False),
        "findings": (f"/studies/{world.loose}/explore?label=weight", False),
        "refused regression": (f"{explore}?label=age&feature=age", False),
        "too early": (f"/studies/{world.waiting}/explore", False),
        "sign in": ("/sign-in", False),
        "new study": ("/studies/new", True),
        "not found": ("/nothing", False),
    }


EXPECTED = {"refused regression": ["422"], "not found": ["404"]}
PAGES = [
    "studies", "no more studies", "finished study", "waiting study", "own study", "closed study",
    "own closed study", "explorer", "regression", "ols", "odds", "correlations", "findings", "refused regression", "too early", "sign in", "new study", "not found",
]  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_no_serious_fault_for_those_who_need_help(world, browser, name, scheme):
    address, signed_in = pages(world)[name]
    for screen in [DESK, PHONE]:
        tab = Tab(browser, world, screen=screen, scheme=scheme, signed_in=signed_in)
        tab.open(address)
        # What is folded away is looked at too.
        tab.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        check_accessibility(tab.page)
        tab.close(EXPECTED.get(name, []))


def check_accessibility(page):
    found = Axe().run(page).response["violations"]
    serious = [
        (fault["id"], [node["html"] for node in fault["nodes"]])
        for fault in found
        if fault["impact"] in ("serious", "critical")
    ]
    assert serious == []
    assert page.locator("h1").count() == 1


CUT_OR_EMPTY = """() => [...document.querySelectorAll("table, .scroll, tr, td")]
  .filter((one) => one.offsetParent && one.offsetHeight > 1)
  .filter((one) => one.matches("table, .scroll")
    ? one.scrollWidth > one.clientWidth + 1
    : !one.innerText.trim() && !one.querySelector("svg"))
  .map((one) => one.outerHTML.slice(0, 120))"""
"""Tables with a column out of sight, and rows and cells that take room with nothing in them."""


@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_every_screen(world, browser, name):
    address, signed_in = pages(world)[name]
    for script in [True, False]:
        tab = Tab(browser, world, script=script, signed_in=signed_in)
        tab.open(address)
        for width in [320, 375, 400, 768, 1000, 1280]:
            tab.page.set_viewport_size({"width": width, "height": 800})
            across = tab.page.evaluate("document.documentElement.scrollWidth")
            assert across <= width, f"{name} is {across} wide on a screen of {width}"
            if width <= 400:
                assert tab.page.evaluate(CUT_OR_EMPTY) == [], f"{name} on a screen of {width}"
            assert tab.page.locator("h1").is_visible()
        tab.close(EXPECTED.get(name, []))


@pytest.mark.parametrize("script", [True, False])
def test_a_coordinator_closes_a_study_that_nobody_has_released_under(world, browser, script):
    study = create_dated(world, world.folder, f"to-close-{script}")
    tab = Tab(browser, world, script=script, screen=PHONE, signed_in=True)
    tab.open(f"/studies/{study}")
    expect(tab.page.get_by_role("cell", name="1930-01-01 to 2010-12-31")).to_be_visible()
    tab.page.get_by_text("Close this study").click()
    tab.page.get_by_label("Reason").fill("one bound was wrong")
    tab.page.get_by_role("button", name="Close it for good").click()
    expect(tab.page.get_by_role("note")).to_contain_text("one bound was wrong")
    expect(tab.page.get_by_text("Nobody can: the study was closed.")).to_be_visible()
    assert tab.page.get_by_role("button", name="New invitation").count() == 0
    tab.close()


def fitted(world, label, features):
    """The coefficients as the command prints them."""
    path = world.folder / "public.parquet"
    if not path.exists():
        urllib.request.urlretrieve(f"{world.address}/api/v1/studies/{world.finished}/dataset", path)
    model = json.loads(potluck("fit", path, "--label", label, "--features", ",".join(features), "--json"))
    return {term_name(one["term"]): one["value"]["estimate"] for one in model["coefficients"]}


def term_name(term):
    if "numeric" in term:
        return term["numeric"]["column"]
    return f"{term['level']['column']}={term['level']['level']}"


def shown(page):
    """The coefficients as the page shows them, to the last bit."""
    found = {}
    for row in page.locator("table", has_text="Coefficients in original units").locator("tbody tr").all():
        # Beside the name stands what speaks against the coefficient.
        name = row.locator("th").inner_text().splitlines()[0]
        if "ntercept" not in name:
            found[name] = float(row.locator("td").nth(1).locator("data").get_attribute("value"))
    return found


def test_without_javascript_features_give_the_coefficients_of_the_command(world, browser):
    tab = Tab(browser, world, script=False)
    tab.open(f"/studies/{world.finished}")
    tab.page.get_by_role("link", name="Explore the data").click()
    tab.page.get_by_role("link", name="Explain pressure").click()
    everything = shown(tab.page)
    assert everything == fitted(world, "pressure", ["age", "bmi", "salt", "exercise", "smoker"])
    for name in ["bmi", "exercise", "smoker"]:
        tab.page.get_by_label(re.compile(f"^{name}")).uncheck()
    tab.page.get_by_role("button", name="Fit").click()
    assert urllib.parse.parse_qs(urllib.parse.urlsplit(tab.page.url).query)["feature"] == ["age", "salt"]
    fewer = shown(tab.page)
    assert fewer == fitted(world, "pressure", ["age", "salt"])
    assert fewer["age"] != everything["age"]
    tab.page.get_by_label("Explain").select_option("smoker")
    tab.page.get_by_role("button", name="Fit").click()
    assert shown(tab.page) == fitted(world, "smoker", ["age", "salt"])
    # A label among the features is refused in words, and the choice stays.
    tab.page.get_by_label("Explain").select_option("age")
    tab.page.get_by_role("button", name="Fit").click()
    expect(tab.page.get_by_role("alert")).to_contain_text("both the label and a feature")
    expect(tab.page.get_by_label(re.compile("^salt"))).to_be_checked()
    tab.close(["422"])


def test_with_javascript_a_choice_updates_the_result_in_place(world, browser):
    tab = Tab(browser, world)
    tab.open(f"/studies/{world.finished}/explore")
    tab.page.evaluate("window.stayed = true")
    tab.page.get_by_label("Explain").select_option("pressure")
    expect(tab.page.get_by_role("heading", name="Regression of pressure")).to_be_visible()
    expect(tab.page.get_by_role("status")).to_have_text("Updated: Regression of pressure")
    expect(tab.page.get_by_label(re.compile("^pressure"))).to_be_disabled()
    tab.page.get_by_label(re.compile("^age")).check()
    expect(tab.page.locator(".result table").first.locator("tbody tr")).to_have_count(2)
    assert tab.page.url.endswith("/explore?label=pressure&feature=age")
    assert shown(tab.page) == fitted(world, "pressure", ["age"])
    tab.page.get_by_label("Explain").select_option("age")
    expect(tab.page.get_by_role("heading", name="Regression of age")).to_be_visible()
    tab.page.get_by_text("More", exact=True).click()
    tab.page.get_by_label("Level of the intervals").fill("7")
    tab.page.get_by_label("Level of the intervals").press("Enter")
    expect(tab.page.get_by_role("alert")).to_contain_text("cannot be fitted")
    assert tab.page.evaluate("window.stayed"), "the page was not loaded again"
    # The address that is shown leads to the same result.
    tab.page.get_by_label("Level of the intervals").fill("0.8")
    tab.page.get_by_label("Level of the intervals").press("Enter")
    expect(tab.page.get_by_role("heading", name="Regression of age")).to_be_visible()
    before = shown(tab.page)
    tab.page.reload()
    assert shown(tab.page) == before
    tab.close(["422"])


def test_what_speaks_against_a_regression_stands_before_its_numbers(world, browser):
    model = world.call("GET", f"/studies/{world.loose}/fit?label=weight")
    found = {term_name(one["term"]): one.get("findings", []) for one in model["coefficients"]}
    assert "feature-unresolved" in [finding["kind"] for finding in found["debt"]]
    sentence = "Privacy noise hides how much debt varies between people: do not rely on its interval."
    for script, screen in [(True, DESK), (False, PHONE)]:
        tab = Tab(browser, world, script=script, screen=screen)
        tab.open(f"/studies/{world.loose}/explore?label=weight")
        note = tab.page.get_by_role("note").filter(has_text="Before you rely on these numbers")
        expect(note).to_contain_text(sentence)
        lead = tab.page.locator(".result .lead")
        expect(lead).to_contain_text("Do not rely on the interval of debt.")
        plot = tab.page.locator(".result svg:visible").first
        tops = [part.bounding_box()["y"] for part in (note, lead, plot)]
        assert tops == sorted(tops)
        table = tab.page.locator("table", has_text="Coefficients in original units")
        expect(table.locator("th", has_text="debt")).to_contain_text("feature in noise")
        expect(table.locator("th", has_text="height").locator(".mark")).to_have_count(min(len(found["height"]), 1))
        tab.close()


def test_snippets_are_copied(world, browser):
    tab = Tab(browser, world)
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tab.open(f"/studies/{world.finished}/explore?label=pressure&feature=age")
    tab.page.get_by_role("button", name="Copy Python").click()
    expect(tab.page.get_by_role("button", name="Copied Python")).to_be_visible()
    copied = tab.page.evaluate("navigator.clipboard.readText()")
    ran = {}
    exec(copied, ran)
    expected = world.call("GET", f"/studies/{world.finished}/fit?label=pressure&feature=age")
    assert ran["model"] == expected, "the snippet does what the page shows"
    tab.close()
    plain = Tab(browser, world, script=False)
    plain.open(f"/studies/{world.finished}/explore?label=pressure&feature=age")
    assert plain.page.get_by_role("button", name="Copy").count() == 0, "no button that does nothing"
    plain.close()


def test_the_model_is_downloaded(world, browser):
    tab = Tab(browser, world, script=False)
    tab.open(f"/studies/{world.finished}/explore?label=pressure&feature=age")
    with tab.page.expect_download() as download:
        tab.page.get_by_role("link", name="Download model.json").click()
    model = json.loads(download.value.path().read_text())
    assert [model["coefficients"][0]["value"]["estimate"]] == list(fitted(world, "pressure", ["age"]).values())
    tab.close()


def test_the_explorer_by_keyboard_alone(world, browser):
    tab = Tab(browser, world)
    tab.open(f"/studies/{world.finished}/explore")
    keyboard = tab.page.keyboard
    keyboard.press("Tab")
    expect(tab.page.get_by_role("link", name="Skip to the content")).to_be_focused()
    keyboard.press("Enter")
    label = tab.page.get_by_label("Explain")
    for _ in range(6):
        keyboard.press("Tab")
        if label.evaluate("one => one === document.activeElement"):
            break
    expect(label).to_be_focused()
    outline = label.evaluate("one => getComputedStyle(one).outlineStyle")
    assert outline == "solid", "one sees where one is"
    keyboard.type("pressure")
    expect(tab.page.get_by_role("heading", name="Regression of pressure")).to_be_visible()
    keyboard.press("Tab")
    expect(tab.page.get_by_label("as", exact=True)).to_be_focused()
    keyboard.press("Tab")
    expect(tab.page.get_by_label(re.compile("^age"))).to_be_focused()
    keyboard.press("Space")
    expect(tab.page.locator(".result table").first.locator("tbody tr")).to_have_count(2)
    assert shown(tab.page) == fitted(world, "pressure", ["age"])
    expect(tab.page.get_by_label(re.compile("^age"))).to_be_focused()
    tab.close()


def fill(page, name):
    page.get_by_label("Name", exact=True).first.fill(name)
    page.get_by_label("People", exact=True).fill("200,000")
    parties = page.get_by_role("group", name=re.compile("^Party"))
    north, south = parties.nth(0), parties.nth(1)
    north.get_by_label("Name of the party").fill("north")
    north.get_by_label("Name", exact=True).fill("age")
    north.get_by_label("Lowest").fill("18")
    north.get_by_label("Highest").fill("100")
    north.get_by_label("Unit").fill("years")
    south.get_by_label("Name of the party").fill("south")
    south.get_by_label("Name", exact=True).fill("smoker")
    south.get_by_label("Values", exact=True).select_option("levels")
    south.get_by_label("Levels").fill("no\nyes")


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("screen", [DESK, PHONE])
def test_a_study_is_created_with_the_form(world, browser, script, screen):
    name = f"study {script} {screen['width']}"
    tab = Tab(browser, world, script=script, screen=screen, signed_in=True)
    page = tab.page
    page.get_by_role("link", name="New study").click()
    # Asked for too early, the form says what is missing, at the fields.
    page.get_by_role("button", name="Create the study").click()
    expect(page.get_by_role("alert")).to_contain_text("Name: a name has 1 to 200 characters")
    expect(page.get_by_label("People", exact=True)).to_have_attribute("aria-invalid", "true")
    check = page.get_by_role("link", name="People: is empty; write a whole number, such as 1000.").first
    check.click()
    expect(page.get_by_label("People", exact=True)).to_be_focused()
    fill(page, name)
    if script:
        expect(page.locator("#plan")).to_contain_text("Privacy of all together")
    else:
        page.get_by_role("button", name="Show the plan").last.click()
        expect(page.locator("#plan")).to_contain_text("Privacy of all together")
    page.get_by_role("button", name="Add a party").click()
    third = page.get_by_role("group", name="Party 3")
    expect(third.get_by_label("Name of the party")).to_be_focused()
    third.get_by_label("Name of the party").fill("east")
    third.get_by_label("Name", exact=True).fill("salt")
    third.get_by_label("Lowest").fill("0")
    third.get_by_label("Highest").fill("20")
    page.get_by_role("button", name="Add a column to party 3").click()
    expect(third.get_by_role("group", name="Column 2").get_by_label("Name", exact=True)).to_be_focused()
    page.get_by_role("button", name="Remove the column 2 of party 3").click()
    expect(third.get_by_role("group", name="Column 2")).to_have_count(0)
    # Nothing that was typed is lost.
    expect(page.get_by_label("Levels").nth(1)).to_have_value("no\nyes")
    expect(page.get_by_label("Name", exact=True).first).to_have_value(name)
    page.get_by_role("button", name="Create the study").click()
    expect(page.get_by_role("heading", name="Study created")).to_be_visible()
    if script:
        check_accessibility(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= screen["width"]
    assert len(set(re.findall("plp_[0-9a-f]{64}", page.content()))) == 3
    expect(page.get_by_text("potluck party accept").first).to_be_visible()
    page.get_by_role("link", name="To the study").click()
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    page.get_by_role("button", name="New invitation for east").click()
    expect(page.get_by_role("heading", name="A new invitation")).to_be_visible()
    assert len(set(re.findall("plp_[0-9a-f]{64}", page.content()))) == 1
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("link", name="Sign in")).to_be_visible()
    tab.close(["422"])


def test_a_sealed_study_is_taken_from_a_file(world, browser, tmp_path):
    draft = tmp_path / "study.toml"
    draft.write_text(STRANGE.replace("<b>bold</b>", "from a file"))
    potluck("study", "seal", draft)
    tab = Tab(browser, world, signed_in=True)
    tab.open("/studies/new")
    tab.page.get_by_text("Or use a study that is sealed already").click()
    tab.page.get_by_label("Or take it from a file").set_input_files(draft)
    expect(tab.page.get_by_label("Text of the sealed study.toml")).to_have_value(re.compile("from a file"))
    tab.page.get_by_role("button", name="Create from the sealed study").click()
    expect(tab.page.get_by_role("heading", name="Study created")).to_be_visible()
    tab.close()


def test_a_wrong_token_does_not_sign_in(world, browser):
    for script in [True, False]:
        tab = Tab(browser, world, script=script)
        tab.open("/sign-in")
        tab.page.get_by_label("Token").fill("plc_wrong")
        tab.page.get_by_role("button", name="Sign in").click()
        expect(tab.page.get_by_role("alert")).to_contain_text("That did not work.")
        assert tab.context.cookies() == []
        tab.close(["403"])


def test_the_list_leads_to_everything(world, browser):
    tab = Tab(browser, world, script=False, screen=PHONE)
    tab.open("/")
    tab.page.get_by_role("link", name="demo", exact=True).click()
    for section in ["Parties", "Columns", "Promise", "Downloads", "Verify", "Take part", "Log"]:
        tab.page.get_by_role("navigation", name="On this page").get_by_role("link", name=section).click()
    expect(tab.page.get_by_text("A public dataset was published")).to_be_visible()
    with tab.page.expect_download() as download:
        tab.page.get_by_role("link", name="Public dataset").click()
    assert download.value.path().stat().st_size > 1000
    tab.page.get_by_role("link", name="Studies").first.click()
    expect(tab.page.get_by_role("heading", name="Studies", exact=True)).to_be_visible()
    tab.close()
