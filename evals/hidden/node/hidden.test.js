import assert from "node:assert";
import test from "node:test";
import { slug } from "./slug.js";

test("no dash at an end", () => {
  assert.equal(slug("Why not?"), "why-not");
  assert.equal(slug("¿Why not"), "why-not");
});
