//! Counts the tests of a source file and those that are skipped, by the syntax of its language or by the name of the
//! file.

use serde::{Deserialize, Serialize};

/// The number of tests in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tests {
    /// The number of tests, including skipped ones.
    pub tests: u32,
    /// The number of skipped tests.
    pub skipped: u32,
}

/// Whether a file contains only tests, judging by its name or its directory.
#[must_use]
pub fn is_test_file(path: &str) -> bool {
    let folders = path.split('/').rev().skip(1);
    folders.into_iter().any(|folder| matches!(folder, "tests" | "test" | "__tests__" | "spec" | "Tests"))
        || is_named_as_test(path)
}

/// Whether the name of a file marks it as a file of tests, in any language.
fn is_named_as_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let stem = name.split('.').next().unwrap_or_default();
    stem.starts_with("test_")
        || ["_test", "_tests", "_spec", "Test", "Tests", "Spec"].iter().any(|end| stem.ends_with(end))
        || [".test.", ".spec.", "-test.", "-spec."].iter().any(|part| name.contains(part))
}

/// A condition on a line, such as whether it begins or skips a test.
type LinePredicate = fn(&str) -> bool;

/// How tests are written in a language.
struct Language {
    extensions: &'static [&'static str],
    /// Matches a line that begins a test.
    test: LinePredicate,
    /// Matches a line that skips one or more tests.
    skip: LinePredicate,
    /// Matches a line that skips all other tests or every test of its file.
    all: LinePredicate,
}

const LANGUAGES: [Language; 11] = [
    Language {
        extensions: &["rs"],
        test: |line| {
            line.starts_with("#[") && line.trim_end_matches(']').ends_with("test")
                || line.starts_with("#[") && line.contains("::test(")
        },
        skip: |line| {
            line.starts_with("#[ignore")
                || line.starts_with("#[cfg_attr(") && line.contains("ignore")
                || line.starts_with("#[cfg(") && !line.contains("test") && is_switched_off(line)
        },
        all: |line| line.starts_with("#![cfg(") && !line.contains("(test)"),
    },
    Language {
        extensions: &["py"],
        test: |line| line.starts_with("def test") || line.starts_with("async def test"),
        skip: |line| {
            starts_any(
                line,
                &["@pytest.mark.skip", "@pytest.mark.xfail", "@mark.skip", "@mark.xfail", "@unittest.skip", "@skip"],
            ) || starts_any(line, &["@unittest.expectedFailure", "@expectedFailure", "pytest.skip(", "self.skipTest("])
                || starts_any(
                    line,
                    &["raise SkipTest", "raise unittest.SkipTest", "raise pytest.skip", "__test__ = False"],
                )
                || line.contains("marks=pytest.mark.skip")
        },
        all: |line| {
            line.starts_with("pytestmark") && (line.contains("skip") || line.contains("xfail"))
                || line.contains("allow_module_level")
                || line.starts_with("pytest.importorskip(")
        },
    },
    Language {
        extensions: &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte"],
        test: |line| {
            starts_any(
                line,
                &["it(", "test(", "it.each", "test.each", "it.concurrent", "test.concurrent", "Deno.test("],
            ) || starts_any(line, &["it.only", "test.only", "fit("])
                || skipped_js(line)
        },
        skip: skips_js,
        all: |line| starts_any(line, &["describe.only", "it.only", "test.only", "fit(", "fdescribe(", "context.only"]),
    },
    Language {
        extensions: &["go"],
        test: |line| starts_any(line, &["func Test", "func Fuzz", "func Example"]),
        skip: |line| line.contains("t.Skip") || line.contains("testing.Short()"),
        all: |line| starts_any(line, &["//go:build", "// +build"]),
    },
    Language {
        extensions: &["java", "kt", "groovy", "scala"],
        test: |line| starts_any(line, &["@Test", "@ParameterizedTest", "@RepeatedTest", "@Property"]),
        skip: |line| {
            starts_any(line, &["@Disabled", "@Ignore", "@EnabledIf", "@EnabledOn"])
                || line.contains("assumeTrue(")
                || line.contains("assumeFalse(")
                || line.contains("enabled = false")
        },
        all: never,
    },
    Language {
        extensions: &["rb"],
        test: |line| {
            starts_any(line, &["def test_", "it \"", "it '", "test \"", "test '", "specify ", "scenario "])
                || skipped_ruby(line)
        },
        skip: skips_ruby,
        all: never,
    },
    Language {
        extensions: &["cs", "fs", "vb"],
        test: |line| starts_any(line, &["[Fact", "[Theory", "[Test]", "[TestCase", "[TestMethod", "[<Fact", "[<Test"]),
        skip: |line| {
            line.contains("Skip =")
                || line.contains("Skip=")
                || starts_any(line, &["[Ignore", "[Explicit", "Assert.Ignore("])
        },
        all: never,
    },
    Language {
        extensions: &["php"],
        test: |line| line.contains("function test") || starts_any(line, &["#[Test]", "* @test", "it(", "test("]),
        skip: |line| {
            line.contains("markTestSkipped") || line.contains("markTestIncomplete") || line.contains("->skip(")
        },
        all: never,
    },
    Language {
        extensions: &["c", "cc", "cpp", "cxx", "h", "hpp", "m", "mm"],
        test: |line| {
            starts_any(line, &["TEST(", "TEST_F(", "TEST_P(", "TEST_CASE(", "BOOST_AUTO_TEST_CASE(", "- (void)test"])
        },
        skip: |line| {
            line.contains("GTEST_SKIP")
                || line.contains("DISABLED_")
                || line.contains("[.")
                || line.starts_with("SKIP(")
        },
        all: never,
    },
    Language {
        extensions: &["ex", "exs"],
        test: |line| starts_any(line, &["test \"", "property \""]),
        skip: |line| starts_any(line, &["@tag :skip", "@tag skip:"]),
        all: |line| starts_any(line, &["@moduletag :skip", "@moduletag skip:"]),
    },
    Language {
        extensions: &["swift", "dart"],
        test: |line| line.starts_with("func test") || starts_any(line, &["@Test", "test('", "testWidgets('"]),
        skip: |line| line.contains("XCTSkip") || line.contains(".disabled(") || line.contains("skip:"),
        all: never,
    },
];

/// Returns the number of tests in a source file; none if its language is not known here and it is not named as a test.
#[must_use]
pub fn tests_of(path: &str, text: &str) -> Option<Tests> {
    let extension = path.rsplit('.').next().filter(|extension| path.len() > extension.len());
    let language = extension.and_then(|extension| LANGUAGES.iter().find(|known| known.extensions.contains(&extension)));
    let Some(language) = language else {
        // In an unknown language, the file itself counts as one test.
        return is_named_as_test(path).then_some(Tests { tests: 1, skipped: 0 });
    };
    let count = |wanted: LinePredicate| {
        u32::try_from(text.lines().map(str::trim).filter(|line| wanted(line)).count()).unwrap_or(u32::MAX)
    };
    let tests = count(language.test);
    // A build constraint on a file without tests skips nothing.
    let all = if tests > 0 && (extension != Some("go") || is_named_as_test(path)) { count(language.all) } else { 0 };
    let skipped = count(language.skip);
    Some(Tests { tests, skipped: if all > 0 { tests.max(skipped) } else { skipped } })
}

fn never(_line: &str) -> bool {
    false
}

/// Whether a condition in Rust is usually false: it requires a feature or can never hold.
fn is_switched_off(line: &str) -> bool {
    line.contains("feature") || line.contains("any()") || line.contains("FALSE") || line.contains("(never")
}

fn starts_any(line: &str, words: &[&str]) -> bool {
    words.iter().any(|word| line.starts_with(word))
}

/// Whether a line begins a test or a group of tests that is skipped.
fn skipped_js(line: &str) -> bool {
    starts_any(
        line,
        &["it.skip", "test.skip", "xit(", "xtest(", "it.todo(", "test.todo(", "describe.skip", "xdescribe("],
    ) || starts_any(line, &["context.skip", "it.failing", "test.failing", "test.fixme", "suite.skip"])
}

fn skips_js(line: &str) -> bool {
    let options = line.starts_with("it(") || line.starts_with("test(");
    skipped_js(line)
        || starts_any(line, &["this.skip(", "t.skip(", "t.todo("])
        || options && (line.contains("skip: true") || line.contains("todo: true"))
}

fn skipped_ruby(line: &str) -> bool {
    starts_any(line, &["xit ", "xit(", "xspecify ", "xdescribe ", "xcontext "])
}

fn skips_ruby(line: &str) -> bool {
    skipped_ruby(line)
        || starts_any(line, &["pending ", "pending\"", "skip ", "skip(", "skip\""])
        || matches!(line, "skip" | "pending")
        || line.contains("skip: true")
        || line.contains(", :skip")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_their_skips_are_counted_in_the_usual_languages() {
        let count = |path: &str, text: &str| tests_of(path, text).map(|tests| (tests.tests, tests.skipped));
        let table = [
            ("a.rs", "#[test]\n    #[ignore]\n#[rt::test(flavor = \"x\")]\nfn a() {}\n#[cfg(test)]", (2, 1)),
            ("a.rs", "#[test]\n#[cfg_attr(not(feature = \"slow\"), ignore)]\nfn a() {}", (1, 1)),
            ("a.rs", "#[cfg(feature = \"slow\")]\n#[test]\nfn a() {}", (1, 1)),
            ("a.rs", "#![cfg(feature = \"slow\")]\n#[test]\nfn a() {}\n#[test]\nfn b() {}", (2, 2)),
            ("a.py", "def test_a():\n@pytest.mark.skip\n  async def test_b():\n", (2, 1)),
            ("a.py", "pytestmark = pytest.mark.skip\ndef test_a():\ndef test_b():\n", (2, 2)),
            ("a.py", "def test_a(self):\n  self.skipTest('x')\n", (1, 1)),
            ("a.py", "def test_a():\n  raise SkipTest\n", (1, 1)),
            ("a.py", "from unittest import skip\n@skip('x')\ndef test_a():\n", (1, 1)),
            ("a.test.ts", "  it('x', () => {})\n it.skip('y')\nxdescribe('z')", (3, 2)),
            ("a.test.ts", "it.only('x')\nit('y')\nit('z')", (3, 3)),
            ("a.test.ts", "describe.only('g')\nit('y')\n", (1, 1)),
            ("a.test.js", "it('x', function () {\n this.skip()\n})", (1, 1)),
            ("a.test.js", "test('x', { skip: true }, () => {})", (1, 1)),
            ("a.test.js", "test('x', t => {\n t.skip()\n})", (1, 1)),
            ("a_test.go", "func TestA(t *testing.T) {\n t.Skip()", (1, 1)),
            ("a_test.go", "//go:build never\nfunc TestA(t *testing.T) {}\nfunc TestB(t *testing.T) {}", (2, 2)),
            ("A.java", "@Test\n@Disabled", (1, 1)),
            ("a_spec.rb", "it 'adds' do\nxit 'subtracts' do", (2, 1)),
            ("ATests.cs", "[Fact]\n[Fact(Skip = \"x\")]", (2, 1)),
            ("ATest.php", "public function testA()\n$this->markTestSkipped()", (1, 1)),
            ("a_test.cc", "TEST(A, B) {}\nTEST(A, DISABLED_C) {}", (2, 1)),
            ("a_test.exs", "@moduletag :skip\ntest \"a\" do\ntest \"b\" do", (2, 2)),
            ("ATests.swift", "func testA() throws {\n throw XCTSkip()", (1, 1)),
            ("tests/a_test.lua", "anything", (1, 0)),
        ];
        for (path, text, expected) in table {
            assert_eq!(count(path, text), Some(expected), "{path}: {text}");
        }
        assert_eq!(count("notes.md", "#[test]"), None);
        assert_eq!(count("tests/data.json", ""), None);
        assert_eq!(count("main.go", "//go:build linux\nfunc main() {}"), Some((0, 0)));
    }

    #[test]
    fn a_test_file_is_known_by_its_name_in_any_language() {
        for path in
            ["tests/a.rs", "a_test.go", "a.spec.ts", "AppTest.kt", "app_spec.rb", "AppTests.swift", "x/test_a.lua"]
        {
            assert!(is_test_file(path), "{path}");
        }
        assert!(!is_test_file("src/latest.rs") && !is_test_file("contest.py"));
    }
}
