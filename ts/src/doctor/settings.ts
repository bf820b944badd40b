/** Checks of the settings: the file itself, folders, credentials, the port. */
import { statSync } from 'node:fs';
import { canMakeFiles } from '../files/exclusive-file.ts';
import { formatAddress } from '../network/address.ts';
import { healthOf } from '../network/health.ts';
import { requireFreeAddress } from '../network/listen.ts';
import { Refusal } from '../refusal.ts';
import type { Config, LoadedConfig } from '../settings/config.ts';
import { requireContainerCredentials } from '../settings/container.ts';
import { type Credential, resolveApiKeys, resolvePassword } from '../settings/credentials.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

/** The mode bits for reading and writing by anyone but the owner. */
const OTHERS = 0o066;

export function checkConfig({ config, warnings }: LoadedConfig): Finding[] {
  const found = warnings.map((line) => warning('config', line, 'correct it, or leave it out'));
  return [...found, ok('config', config.file === undefined ? 'no svc.json: the defaults' : `${config.file} is read`)];
}

export function checkFolders({ file, configDir, dataDir }: Config): Finding[] {
  const findings: Finding[] = [];
  if (dataDir !== undefined && !canMakeFiles(dataDir)) {
    findings.push(warning('folders', `SVC_DATA: nothing can be written to ${dataDir}`, 'make it, and writable'));
  }
  if (file !== undefined || canMakeFiles(configDir)) {
    findings.push(
      ok('folders', file === undefined ? `the first start makes svc.json in ${configDir}` : `${file} is there`),
    );
  } else {
    findings.push(warning('folders', `no svc.json can be made in ${configDir}`, 'nothing, if the defaults will do'));
  }
  return findings;
}

/** Returns the findings about the credentials; the check generates none. */
export function checkCredentials(config: Config, isContainer: boolean): Finding[] {
  const findings = [
    ...credential('api key', () => resolveApiKeys(config, { create: false })),
    ...credential('password', () => resolvePassword(config, { create: false })),
  ];
  if (isContainer) findings.push(...findingsOf('container', () => containerCredentials(config)));
  const { file, apiKey, password } = config;
  const isInFile = [...apiKey, password].some((secret) => secret !== undefined && !/^SVC_/.test(secret.origin));
  if (file !== undefined && isInFile && process.platform !== 'win32' && (statSync(file).mode & OTHERS) !== 0) {
    findings.push(
      warning('credentials', `${file}: others than its owner can read the secrets in it`, `chmod 600 ${file}`),
    );
  }
  return findings;
}

function containerCredentials(config: Config): Finding[] {
  requireContainerCredentials(config);
  return [ok('container', 'the credentials are set as the image wants it')];
}

function credential(check: string, resolve: () => Credential): Finding[] {
  return findingsOf(check, () => {
    const { status, warnings } = resolve();
    return [...warnings.map((line) => warning(check, line)), ok(check, status)];
  });
}

/** Returns the findings of `work`, or the problem with which it refuses. */
function findingsOf(check: string, work: () => Finding[]): Finding[] {
  try {
    return work();
  } catch (error) {
    if (error instanceof Refusal) return [problem(check, error.message)];
    throw error;
  }
}

/**
 * Returns the finding about the port. If another server of this kind has the port, it may be the very server that the
 * user asks about, so that is a warning only.
 */
export async function checkPort({ listen }: Config): Promise<Finding> {
  const address = formatAddress(listen);
  try {
    await requireFreeAddress(listen);
    return ok('port', `${address} is free`);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const health = await healthOf(listen);
    if (health === undefined) return problem('port', error.message);
    const { status, model } = health;
    const message = `${address} is taken by a server that is running (status ${status}, model ${model})`;
    return warning('port', message, 'nothing, if that is the server you mean; a second one needs another port');
  }
}
