/** Servers that act as hosts of releases. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { createServer as createSafeServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { archiveName, type Releases } from '../install/releases.ts';
import { temporaryFolder } from '../temporary-folder.ts';

/** An answer to one request for a file, other than sending it. */
type Answer = (response: ServerResponse, bytes: Buffer) => void;

/** Sends half of the file and hangs up. */
export const hangUp: Answer = (response, bytes) => {
  response.writeHead(200, { 'content-length': bytes.length });
  response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
};

export interface ReleaseServer {
  /** The URL of the host, without a slash at its end. */
  readonly url: string;
  /** The paths of the requests. */
  readonly asked: readonly string[];
}

/**
 * Serves releases in the way of a release host, under `/latest/download/` and `/download/vVERSION/`, and as a plain
 * folder under `/flat/`.
 */
export async function serveReleases(
  test: TestContext,
  releases: Releases,
  answers: Readonly<Record<string, Answer>> = {},
): Promise<ReleaseServer> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    const path = /^\/(?:latest\/download|download\/v([^/]+)|flat)\/([^/]+)$/.exec(request.url ?? '');
    const [, version, name = ''] = path ?? [];
    const names = readdirSync(releases.folder);
    const isReleased = version === undefined || names.includes(archiveName(version));
    if (!isReleased || !names.includes(name)) return void response.writeHead(404).end('no such file');
    const bytes = readFileSync(join(releases.folder, name));
    const answer = answers[name];
    if (answer === undefined) response.end(bytes);
    else answer(response, bytes);
  });
  return { url: `http://${await listen(test, server)}`, asked };
}

/** Starts a server that runs until the test ends, and returns its host and port. */
async function listen(
  test: TestContext,
  server: Pick<Server, 'listen' | 'address' | 'close' | 'closeAllConnections'>,
): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  test.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export interface SafeServer {
  readonly url: string;
  /** The certificate file that curl must trust; `wgetSettings` is the settings file that makes wget trust it. */
  readonly certificate: string;
  readonly wgetSettings: string;
  /** Redirects requests for a file in the folder `from` to the same file in `to`. */
  lead(from: string, to: string): void;
}

/** Serves releases over HTTPS, under any name of a top folder. */
export async function serveSafely(test: TestContext, releases: Releases): Promise<SafeServer> {
  const folder = temporaryFolder(test);
  const [key, certificate, wgetSettings] = ['key.pem', 'certificate.pem', 'wgetrc'].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
  const kind = ['-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  execFileSync('openssl', ['req', ...kind, ...subject, '-keyout', key, '-out', certificate], { stdio: 'pipe' });
  writeFileSync(wgetSettings, `ca_certificate = ${certificate}\n`);
  const ways = new Map<string, string>();
  const server = createSafeServer({ key: readFileSync(key), cert: readFileSync(certificate) }, (request, response) => {
    const [, from = '', name = ''] = /^(\/[^/]+)\/([^/]+)$/.exec(request.url ?? '') ?? [];
    const to = ways.get(from);
    if (to !== undefined) response.writeHead(302, { location: `${to}/${name}` }).end();
    else if (readdirSync(releases.folder).includes(name)) response.end(readFileSync(join(releases.folder, name)));
    else response.writeHead(404).end('no such file');
  });
  return {
    url: `https://${await listen(test, server)}`,
    certificate,
    wgetSettings,
    lead: (from, to) => void ways.set(from, to),
  };
}
