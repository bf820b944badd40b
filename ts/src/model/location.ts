/** The location of a model, as the setting `model` names it. */

import { Refusal } from '../refusal.ts';
import type { Config } from '../settings/config.ts';
import { type HubName, hubNameOfPage, isHubName, parseHubName } from './hub/name.ts';

export type ArchiveFormat = 'tar' | 'zip';

/** The form in which a model is fetched: one packed file, a list of files with their digests, or a folder of files. */
export type Packaging =
  | { readonly kind: 'archive'; readonly format: ArchiveFormat }
  | { readonly kind: 'manifest' | 'folder' };

export type Location =
  | { readonly at: 'embedded' }
  | { readonly at: 'folder'; readonly path: string }
  | { readonly at: 'file'; readonly path: string; readonly packaging: Packaging }
  | { readonly at: 'url'; readonly url: URL; readonly packaging: Packaging }
  | { readonly at: 's3'; readonly bucket: string; readonly key: string; readonly packaging: Packaging }
  | { readonly at: 'hub'; readonly name: HubName };

const ENDINGS: readonly (readonly [RegExp, Packaging])[] = [
  [/\.(tar\.gz|tgz)$/i, { kind: 'archive', format: 'tar' }],
  [/\.zip$/i, { kind: 'archive', format: 'zip' }],
  [/\.json$/i, { kind: 'manifest' }],
];

/**
 * Returns the location of the model in `config`.
 *
 * @throws Refusal when the setting names no place that a model can come from.
 */
export function parseLocation({ model, modelAllowHttp }: Pick<Config, 'model' | 'modelAllowHttp'>): Location {
  if (model === '') return { at: 'embedded' };
  if (isHubName(model)) return { at: 'hub', name: parseHubName(model) };
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(model)?.[1]?.toLowerCase();
  if (scheme === undefined) return localLocation(model);
  if (scheme === 's3') return s3Location(model);
  if (scheme !== 'https' && scheme !== 'http') {
    throw new Refusal(
      `model: ${publicSource(model)}: must be a folder, an archive, or begin with hf:, https:// or s3://`,
    );
  }
  if (!URL.canParse(model)) throw new Refusal(`model: ${publicSource(model)}: is not a URL`);
  const url = new URL(model);
  const packaging = packagingOf(url.pathname);
  // The hub sends archives and manifests by their addresses, too.
  const page = packaging === undefined || url.pathname.includes('/blob/') ? hubNameOfPage(model) : undefined;
  if (page !== undefined) throw new Refusal(`model: ${publicSource(model)}: a model of a hub is named ${page}`);
  requireSafeScheme(url, { setting: 'model', allowHttp: modelAllowHttp });
  if (packaging === undefined) {
    throw new Refusal(`model: ${publicSource(model)}: must end in .tar.gz, .tgz, .zip or .json`);
  }
  return { at: 'url', url, packaging };
}

/**
 * Requires HTTPS, or plain HTTP where it is allowed or goes to this machine.
 *
 * @throws Refusal for any other URL.
 */
export function requireSafeScheme(url: URL, { setting, allowHttp }: { setting: string; allowHttp: boolean }): void {
  if (url.protocol === 'https:' || (url.protocol === 'http:' && (allowHttp || isLoopbackName(url.hostname)))) return;
  const problem = url.protocol === 'http:' ? 'http:// needs model_allow_http' : 'must begin with https://';
  throw new Refusal(`${setting}: ${publicSource(url.href)}: ${problem}`);
}

/** Whether a URL's host is a loopback name or address of this machine, on which no other machine can listen. */
export function isLoopbackName(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
}

/** Returns `source` without the parts that may be secret: a URL's user, password, query and fragment. */
export function publicSource(source: string): string {
  // A drive letter looks like a scheme to the URL parser: only `scheme://` is taken for a URL.
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(source)) return source;
  if (!URL.canParse(source)) return source.replace(/[?#].*$/s, '').replace(/\/\/.*@/s, '//');
  const url = new URL(source);
  url.username = url.password = url.search = url.hash = '';
  return url.href;
}

function localLocation(path: string): Location {
  const packaging = packagingOf(path);
  return packaging?.kind === 'archive' ? { at: 'file', path, packaging } : { at: 'folder', path };
}

/** Returns the location in an `s3://` address. Keys may hold any character, so the address is not parsed as a URL. */
function s3Location(model: string): Location {
  const [, bucket = '', path = ''] = /^s3:\/\/([^/]*)\/?(.*)$/is.exec(model) ?? [];
  const mistake = bucketMistake(bucket);
  if (mistake !== undefined) throw new Refusal(`model: ${publicSource(model)}: ${mistake}`);
  const key = path.replace(/\/+$/, '');
  return { at: 's3', bucket, key, packaging: packagingOf(key) ?? { kind: 'folder' } };
}

/** Returns what is wrong with the name of a bucket, by the rules of S3; undefined when the name is right. */
function bucketMistake(bucket: string): string | undefined {
  const shown = JSON.stringify(bucket);
  if (bucket === '') return 'must be s3://bucket/prefix, and names no bucket';
  // The text before the `@` may be a secret, so it is not shown.
  if (bucket.includes('@')) return "must be s3://bucket/prefix; keys are taken from the AWS client's own settings";
  if (bucket.length < 3 || bucket.length > 63) {
    return `the name of a bucket has 3 to 63 characters, ${shown} has ${bucket.length}`;
  }
  if (!/^[a-z0-9.-]+$/.test(bucket)) {
    return `the name of a bucket has small letters, digits, dots and hyphens, ${shown} has others`;
  }
  if (/^[a-z0-9].*[a-z0-9]$/.test(bucket)) return undefined;
  return `the name of a bucket begins and ends with a small letter or a digit, ${shown} does not`;
}

function packagingOf(path: string): Packaging | undefined {
  return ENDINGS.find(([ending]) => ending.test(path))?.[1];
}
