/** The server in the way a user starts it, as a process of its own on a free port of 127.0.0.1, and a client of it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, type IncomingHttpHeaders, type OutgoingHttpHeaders, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { SvcProcess } from '../svc-process.ts';
import { type Ending, folderWithConfig, temporaryFolder } from '../temporary-folder.ts';

export interface StartOptions {
  /** Flags of `svc serve` in addition to `--listen`. */
  readonly args?: readonly string[];
  /** The model folder; the embedded model's by default. */
  readonly model?: string;
  readonly listen?: string;
  /** The content of `svc.json`; without it, the server makes its own file. */
  readonly settings?: object;
  readonly env?: Readonly<Record<string, string>>;
  /** The working folder of the process. */
  readonly cwd?: string;
  /** Whether to return before the model is loaded. */
  readonly isLoading?: boolean;
}

export interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Buffer;
  /** The signal at which the client hangs up. */
  readonly signal?: AbortSignal;
}

export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** One line of the server's log. */
export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

export class LiveServer {
  readonly process: SvcProcess;
  readonly url: URL;
  readonly #agent: Agent;

  private constructor(process: SvcProcess, url: URL, agent: Agent) {
    this.process = process;
    this.url = url;
    this.#agent = agent;
  }

  /** Returns a server that lives until the test ends. */
  static async start(test: Ending, options: StartOptions = {}): Promise<LiveServer> {
    const { args = [], model, listen = '127.0.0.1:0', settings, env = {}, isLoading = false } = options;
    const cwd = options.cwd ?? (settings ? folderWithConfig(test, settings) : temporaryFolder(test));
    const flags = ['--listen', listen, '--device', 'cpu', ...(model ? ['--model', model] : []), ...args];
    const svc = new SvcProcess(test, ['serve', ...flags], { cwd, env });
    const url = new URL(await svc.url());
    if (!isLoading) await svc.logged(/"msg":"model .+ loaded"/);
    const agent = new Agent({ keepAlive: true, maxSockets: 64 });
    test.after(() => agent.destroy());
    return new LiveServer(svc, url, agent);
  }

  /** Sends one request, with no headers except those that HTTP requires and the given ones. */
  async send({ body, headers, ...options }: Sent): Promise<Received> {
    const length = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };
    const { port } = this.url;
    const address = { host: '127.0.0.1', port, agent: this.#agent };
    const req = request({ ...address, headers: { ...length, ...headers }, ...options }).end(body);
    const [res] = await once(req, 'response');
    const text = (await buffer(res)).toString('utf8');
    return { status: res.statusCode, headers: res.headers, text };
  }

  /** Asks for a decision. */
  decide(body: string | Buffer, sent: Sent = {}): Promise<Received> {
    return this.send({ method: 'POST', path: '/v1/systemone', body, ...sent });
  }

  get(path: string, headers: OutgoingHttpHeaders = {}): Promise<Received> {
    return this.send({ path, headers });
  }

  /** Returns the text of an answered decision. */
  async answer(body: string | Buffer, headers: OutgoingHttpHeaders = {}): Promise<string> {
    const { status, text } = await this.decide(body, { headers });
    assert.equal(status, 200, text);
    return text;
  }
}
