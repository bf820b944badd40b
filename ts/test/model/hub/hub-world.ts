/** The server and the commands as a user starts them, with the stand-in of a hub. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { filesIn } from '../../../src/model/file-digest.ts';
import { type Fixture, fixture } from '../../addon/model-folders.ts';
import type { Ended } from '../../addon/program.ts';
import { LiveServer, type StartOptions } from '../../real/live-server.ts';
import { runSvc, SvcProcess } from '../../svc-process.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { StandInHub } from './stand-in-hub.ts';

const CARD = '---\nlicense: apache-2.0\n---\n# A model\n';

/** Returns the files of a tiny model, with a card and weights of another program beside them. */
export async function filesOfFixture(name: Fixture): Promise<Record<string, Buffer | string>> {
  const files = (await filesIn(fixture(name))).map(({ path }) => [path, readFileSync(join(fixture(name), path))]);
  return { 'README.md': CARD, 'model.safetensors': 'x', ...Object.fromEntries(files) };
}

export class HubWorld {
  readonly hub: StandInHub;
  /** The folder of `SVC_DATA`, and that of the hub's cache. */
  readonly data: string;
  readonly cache: string;
  readonly #test: TestContext;
  readonly #env: Readonly<Record<string, string>>;
  readonly #started: LiveServer[] = [];

  private constructor(test: TestContext, hub: StandInHub, env: Readonly<Record<string, string>>) {
    this.#test = test;
    this.hub = hub;
    // This runs before the removal of the folders that the servers write to.
    test.after(() => Promise.all(this.#started.map((live) => this.end(live))));
    this.data = temporaryFolder(test);
    const home = temporaryFolder(test);
    this.cache = join(home, 'hub');
    const unset = { HF_TOKEN: '', HF_HUB_OFFLINE: '', HF_HUB_CACHE: '', HUGGINGFACE_HUB_CACHE: '' };
    this.#env = { ...unset, SVC_DATA: this.data, HF_HOME: home, HF_ENDPOINT: hub.url, ...env };
  }

  /** Returns a hub with a tiny model as `org/name`. */
  static async start(test: TestContext, name: Fixture, env: Readonly<Record<string, string>> = {}): Promise<HubWorld> {
    // A server that redirects to this machine is not trusted by a process, so all files are at the hub itself.
    const hub = await StandInHub.start(test, { storage: 'here' });
    hub.publish('org/name', await filesOfFixture(name));
    return new HubWorld(test, hub, env);
  }

  /** Returns a server on a model of the hub. */
  async serve(model = 'hf:org/name', { settings = {}, env = {}, ...options }: StartOptions = {}): Promise<LiveServer> {
    const live = await LiveServer.start(this.#test, {
      settings: { model, allow_no_password: true, ...settings },
      env: { ...this.#env, ...env },
      ...options,
    });
    this.#started.push(live);
    return live;
  }

  async end(live: LiveServer): Promise<void> {
    live.process.signal('SIGKILL');
    await live.process.finished;
  }

  /** Runs a command to its end. */
  run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
    return runSvc(this.#test, args, { cwd: temporaryFolder(this.#test), env: { ...this.#env, ...env } });
  }

  /** Begins a command. */
  begin(args: readonly string[]): SvcProcess {
    return new SvcProcess(this.#test, args, { cwd: temporaryFolder(this.#test), env: this.#env });
  }
}
