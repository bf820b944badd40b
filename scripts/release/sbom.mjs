/**
 * Makes the bill of materials of an archive, in CycloneDX 1.5: the bundled npm packages, the linked crates, ONNX
 * Runtime and Node. The data about npm packages come from `npm sbom`.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { linkedCrates } from './crates.mjs';
import { NODE_VERSION, ROOT_PACKAGE, VERSION } from './platforms.mjs';
import { output } from './run.mjs';

/** The folders of the bundles, each of which also has the notices of the bundled packages. */
const BUNDLES = ['app', 'assets', 'docs', 'lib'];

/** The package that ONNX Runtime's library is taken from. */
const RUNTIME = 'onnxruntime-node';

/** Returns `name@version` of each package that is in a bundle. */
function bundledPackages() {
  const texts = BUNDLES.map((name) => readFileSync(join('dist', name, 'third-party-notices.txt'), 'utf8'));
  const titles = texts.flatMap((text) => text.split(`\n${'-'.repeat(80)}\n\n`).map((part) => part.split('\n', 1)[0]));
  return new Set(titles.flatMap((title) => /^(\S+) (\d\S*) \(.*\)$/.exec(title)?.slice(1, 3).join('@') ?? []));
}

/** Returns npm's bill of materials of the packages in the lockfile. */
function npmSbom() {
  return JSON.parse(output('npm', ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only']));
}

function npmComponents() {
  const wanted = bundledPackages();
  const { components } = npmSbom();
  const found = components.filter(({ name, version }) => name === RUNTIME || wanted.has(`${name}@${version}`));
  const missing = [...wanted].filter((name) => !found.some((one) => name === `${one.name}@${one.version}`));
  if (missing.length > 0) throw new Error(`npm sbom does not tell of ${missing.join(', ')}`);
  // A component's path and purpose in the checkout no longer apply: in the archive it is part of the whole.
  return found.map(({ properties, ...component }) => ({ ...component, scope: 'required' }));
}

function crateComponent({ name, version, license, checksum }) {
  return {
    'bom-ref': `pkg:cargo/${name}@${version}`,
    type: 'library',
    name,
    version,
    scope: 'required',
    purl: `pkg:cargo/${name}@${version}`,
    ...(checksum === undefined ? {} : { hashes: [{ alg: 'SHA-256', content: checksum }] }),
    // CycloneDX does not read a slash, the older way to write "OR".
    ...(license ? { licenses: [{ expression: license.replaceAll('/', ' OR ') }] } : {}),
  };
}

/** Returns the SHA-256 of each crate's file, by `name version`, from the lockfile. */
function crateChecksums() {
  const entry = /^name = "(.+)"\nversion = "(.+)"\nsource = ".+"\nchecksum = "(.+)"$/gm;
  const entries = [...readFileSync('Cargo.lock', 'utf8').matchAll(entry)];
  return new Map(entries.map(([, name, version, checksum]) => [`${name} ${version}`, checksum]));
}

function crateComponents(platform) {
  const checksums = crateChecksums();
  return linkedCrates(platform).map((crate) =>
    crateComponent({ ...crate, checksum: checksums.get(`${crate.name} ${crate.version}`) }),
  );
}

function nodeComponent({ node }) {
  const purl = `pkg:npm/${node.package}@${NODE_VERSION}`;
  return {
    'bom-ref': purl,
    type: 'platform',
    name: node.package,
    version: NODE_VERSION,
    scope: 'required',
    purl,
    hashes: [{ alg: 'SHA-512', content: Buffer.from(node.integrity.replace('sha512-', ''), 'base64').toString('hex') }],
    licenses: [{ license: { id: 'MIT' } }],
  };
}

/** Returns the bill of materials of the archive for `platform`, as an object. */
export function billOfMaterials(platform) {
  const { name, license, description } = ROOT_PACKAGE;
  const purl = `pkg:npm/${name.replace('@', '%40')}@${VERSION}`;
  const licenses = [{ license: { id: license } }];
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      component: { 'bom-ref': purl, type: 'application', name, version: VERSION, description, purl, licenses },
      properties: [{ name: 'svc:platform', value: platform.name }],
    },
    components: [...npmComponents(), ...crateComponents(platform), nodeComponent(platform)],
  };
}
