/** A host of releases. */
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { archiveName, type Releases } from '../install/releases.ts';

/** Answers one request for a file in another way than by sending it. */
type Answer = (response: ServerResponse, bytes: Buffer) => void;

/** Sends half of the file and hangs up. */
export const hangUp: Answer = (response, bytes) => {
  response.writeHead(200, { 'content-length': bytes.length });
  response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
};

export interface ReleaseServer {
  /** Without a slash at its end. */
  readonly url: string;
  /** The paths that were asked for. */
  readonly asked: readonly string[];
}

/**
 * Serves releases as a host of releases does, under `/latest/download/` and `/download/vVERSION/`, and as a plain folder
 * under `/flat/`.
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
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  test.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}
