import assert from "node:assert";
import test from "node:test";
import { slug } from "./slug.js";

test("words are joined by dashes", () => assert.equal(slug("Hello, world"), "hello-world"));
