/**
 * Compares every place that names the version with the one in package.json: `node scripts/release/version.mjs` fails if
 * a place has another version, and `node scripts/release/version.mjs X.Y.Z` writes that version everywhere.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import process from 'node:process';
import { asProgram } from './command.mjs';
import { VERSION } from './platforms.mjs';

/** Each file, and the pattern of its version, which stands between the two groups. */
const PLACES = [
  ['package.json', /^( {2}"version": ")[^"]+(")/m],
  ['package-lock.json', /^( {2}"version": ")[^"]+(")/m],
  ['package-lock.json', /^( {4}"": \{\n {6}"name": "@svc\/server",\n {6}"version": ")[^"]+(")/m],
  ['Cargo.toml', /^(\[workspace\.package\]\nversion = ")[^"]+(")/m],
  ['Cargo.lock', /^(name = "svc-engine"\nversion = ")[^"]+(")/m],
  ['deploy/helm/svc/Chart.yaml', /^(version: )\S+()$/m],
  ['deploy/helm/svc/Chart.yaml', /^(appVersion: )\S+()$/m],
  ['deploy/kustomize/kustomization.yaml', /^( +newTag: ")[^"]+(")/m],
];

function withVersion(file, pattern, version) {
  const text = readFileSync(file, 'utf8');
  if (!pattern.test(text)) throw new Error(`${file} does not name the version where it should`);
  return { before: text, after: text.replace(pattern, `$1${version}$2`) };
}

function check() {
  for (const [file, pattern] of PLACES) {
    const { before, after } = withVersion(file, pattern, VERSION);
    if (before !== after) throw new Error(`${file} has another version than package.json, which has ${VERSION}`);
  }
}

function write(version) {
  if (!/^\d+\.\d+\.\d+$/.test(version)) throw new Error(`${version} is no version such as 1.2.3`);
  for (const [file, pattern] of PLACES) writeFileSync(file, withVersion(file, pattern, version).after);
}

await asProgram(import.meta.url, ([version]) => {
  if (version === undefined) check();
  else write(version);
  process.stdout.write(`version: ${version ?? VERSION}\n`);
});
