//! The page about an image: nothing from the image gets out of its place, and in a browser the script runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use durin_testkit::skip;

use crate::support::{Place, dwarfsck, stdout};

/// Names that would break out of HTML, of a script, of an attribute, or of the line.
const HOSTILE: [&str; 6] = [
    "</script><script>document.title='owned'",
    "\"onmouseover=\"document.title='owned'",
    "<img src=x onerror=document.title='owned'>",
    "<!--",
    "'&amp;quot;\u{2028}",
    "__proto__",
];

fn made() -> Place {
    let place = Place::new();
    let tree = place.tree();
    for (number, name) in HOSTILE.into_iter().enumerate() {
        let dir = tree.join(name.replace('/', "\u{2215}"));
        fs::create_dir(&dir).unwrap();
        fs::write(
            dir.join(format!("{name}.a").replace('/', "\u{2215}")),
            vec![65; 9000 + number],
        )
        .unwrap();
    }
    fs::create_dir_all(tree.join("a<script>b/c")).unwrap();
    fs::write(tree.join("a<script>b/c/script>"), vec![7; 50_000]).unwrap();
    place
}

fn page(place: &Place) -> PathBuf {
    let page = place.path("page.html");
    let image = place.image();
    // The name of the image is shown, too.
    let renamed = place.path("<b>image.dwarfs");
    fs::rename(image, &renamed).unwrap();
    let run = dwarfsck().arg(&renamed).arg("--html").arg(&page).succeed();
    assert!(run.stdout.is_empty(), "an answer in itself: {run}");
    page
}

/// The text between tags, and the tags.
fn tags(html: &str) -> Vec<&str> {
    html.split('<')
        .skip(1)
        .map(|rest| rest.split('>').next().unwrap())
        .collect()
}

#[test]
fn names_stay_in_their_places() {
    let place = made();
    let html = fs::read_to_string(page(&place)).unwrap();
    // All tags outside of style and script are ours: no name made one or an attribute.
    let (style, script) = (
        html.find("<style>").unwrap(),
        html.find("</style>").unwrap(),
    );
    let body = format!("{}{}", &html[..style], &html[script..]);
    let (body, scripts) = body.split_once("<script").unwrap();
    for tag in tags(body) {
        let name = tag
            .trim_start_matches('/')
            .split([' ', '\n'])
            .next()
            .unwrap();
        let known = [
            "!DOCTYPE", "html", "head", "meta", "title", "style", "body", "header", "h1", "h2",
            "main", "p", "div", "b", "span", "nav", "a", "section", "fieldset", "legend", "label",
            "input", "i", "noscript", "table", "thead", "tbody", "tr", "th", "td", "code", "ul",
            "li", "ol", "svg", "g", "rect", "title", "details", "summary",
        ];
        assert!(known.contains(&name), "<{tag}>");
        assert!(
            !tag.contains("onmouseover") && !tag.contains("onerror"),
            "<{tag}>"
        );
    }
    assert_eq!(html.matches("</script>").count(), 2, "data and script");
    let (data, _) = scripts.split_once("</script>").unwrap();
    let data = &data[data.find('>').unwrap() + 1..];
    assert!(!data.contains(['<', '>', '&']), "{data}");
    let rows: serde_json::Value = serde_json::from_str(data).unwrap();
    let names: Vec<_> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row[1].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"__proto__") && names.contains(&"a<script>b"),
        "{names:?}"
    );
    // Nothing is loaded.
    for part in ["http:", "https:", "src=\"", "url(", "@import"] {
        assert!(!html.contains(part), "{part}");
    }
    let size = html.len();
    assert!(size < 100_000, "{size}");
    let printed = dwarfsck()
        .arg(place.path("<b>image.dwarfs"))
        .args(["--html", "-"]);
    assert_eq!(stdout(&printed.succeed()), html, "the same each time");
}

/// What a headless browser makes of the page.
fn browse(page: &Path, more: &[&str]) -> Option<String> {
    let browser = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| {
            std::env::var_os("PATH").is_some_and(|path| {
                std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
            })
        });
    let Some(browser) = browser else {
        skip::skipped("no chromium");
        return None;
    };
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ])
        .args([
            "--window-size=1200,900",
            "--virtual-time-budget=5000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", home.path().display()))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .env("HOME", home.path())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn the_script_draws_and_nothing_else_runs() {
    let place = made();
    let page = page(&place);
    let Some(dom) = browse(&page, &[]) else {
        return;
    };
    assert!(
        dom.contains("<html lang=\"en\" class=\"has-script\">"),
        "{}",
        &dom[..300.min(dom.len())]
    );
    assert!(!dom.contains("<title>owned"), "a name ran as a script");
    let cells = dom.matches("<button type=\"button\" tabindex=").count()
        + dom.matches("class=\"cell ").count();
    assert!(cells > 5, "{cells} cells: {dom}");
    assert!(
        dom.contains("aria-current=\"location\">/</button>"),
        "the way to the directory"
    );
    assert!(
        dom.contains("<th scope=\"col\" class=\"n\"><button type=\"button\">Stored</button>"),
        "tables can be sorted"
    );
}

#[test]
fn keys_move_through_the_map() {
    let place = made();
    let page = page(&place);
    // A second script, let in by taking out the policy, presses keys and notes what comes of it.
    let html = fs::read_to_string(&page).unwrap();
    let policy = html
        .lines()
        .find(|line| line.contains("Content-Security-Policy"))
        .unwrap();
    let press = "<script>
        const notes = [];
        const key = (name) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: name, bubbles: true}));
        const focused = () => (document.activeElement.getAttribute('aria-label') || 'none').split(' (')[0].split(',')[0];
        const note = () => notes.push(document.getElementById('crumbs').textContent + ' ' + focused());
        document.querySelector('button.cell').focus(); note();
        key('Enter'); note(); key('Enter'); note(); key('Escape'); key('Escape'); note();
        key('ArrowRight'); notes.push(focused() !== '/a<script>b');
        document.querySelector('input[value=size]').click(); note();
        document.querySelector('#extensions th:nth-child(1) button').click();
        notes.push(document.querySelector('#extensions th').getAttribute('aria-sort'));
        document.title = JSON.stringify(notes);
    </script></body>";
    let html = html.replace(policy, "").replace("</body>", press);
    let tried = place.path("tried.html");
    fs::write(&tried, html).unwrap();
    let Some(dom) = browse(&tried, &[]) else {
        return;
    };
    let title = dom
        .split("<title>")
        .nth(1)
        .unwrap()
        .split("</title>")
        .next()
        .unwrap();
    let title = title.replace("&lt;", "<").replace("&gt;", ">");
    let notes: serde_json::Value = serde_json::from_str(&title).expect(&title);
    assert_eq!(notes[0], "/ /a<script>b", "{title}");
    assert_eq!(notes[1], "/a<script>b/ /a<script>b/c", "{title}");
    assert_eq!(notes[2], "/a<script>b/c/ /a<script>b/c/script>", "{title}");
    assert_eq!(notes[3], "/ /a<script>b", "up again, where it was: {title}");
    assert_eq!(notes[4], true, "{title}");
    assert_eq!(notes[6], "ascending", "{title}");
}
