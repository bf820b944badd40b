/** Finds the crates in the addon of a platform, and their licences. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { output } from './run.mjs';

const ROOT_CRATE = 'svc-engine';

function metadata(target) {
  const args = ['metadata', '--format-version', '1', '--locked', '--filter-platform', target];
  return JSON.parse(output('cargo', args));
}

/** Whether a dependency is linked into the addon, and not only used by the build or by tests. */
const isLinked = ({ dep_kinds }) => dep_kinds.some(({ kind }) => kind === null);

/** Whether a crate runs only in the compiler. */
const isMacro = ({ targets }) => targets.some(({ kind }) => kind.includes('proc-macro'));

/**
 * Returns the crates that are linked into the addon for `target`, sorted and without our own, in the form of
 * `cargo metadata`.
 */
export function linkedCrates({ target }) {
  const { packages, resolve } = metadata(target);
  const byId = new Map(packages.map((one) => [one.id, one]));
  const nodes = new Map(resolve.nodes.map((node) => [node.id, node]));
  const root = packages.find(({ name }) => name === ROOT_CRATE).id;
  const reached = new Set([root]);
  // The loop also visits the elements that are added to the set meanwhile.
  for (const id of reached) {
    for (const dependency of nodes.get(id).deps.filter(isLinked)) {
      if (!isMacro(byId.get(dependency.pkg))) reached.add(dependency.pkg);
    }
  }
  reached.delete(root);
  const order = (left, right) => (`${left.name} ${left.version}` < `${right.name} ${right.version}` ? -1 : 1);
  return [...reached].map((id) => byId.get(id)).sort(order);
}

function licenceTexts({ manifest_path: manifest }) {
  const folder = dirname(manifest);
  const names = readdirSync(folder).filter((name) => /^(licen[cs]e|copying|notice|unlicense)/i.test(name));
  return names.sort().map((name) => readFileSync(join(folder, name), 'utf8').trim());
}

/**
 * Returns the names, versions and licences of all crates, with every licence text once, under the crates that it
 * belongs to.
 */
export function crateNotices(crates) {
  const owners = new Map();
  const title = ({ name, version, license }) => `${name} ${version} (${license ?? 'see below'})`;
  for (const crate of crates) {
    for (const text of licenceTexts(crate)) owners.set(text, [...(owners.get(text) ?? []), crate]);
  }
  const texts = [...owners].map(([text, of]) => `${of.map(({ name }) => name).join(', ')}:\n\n${text}\n`);
  return [`${crates.map(title).join('\n')}\n`, ...texts].join(`\n${'-'.repeat(80)}\n\n`);
}
