/** `svc health`: whether the server with these settings is well, for a container's health check. */
import { formatAddress } from '../network/address.ts';
import { healthOf } from '../network/health.ts';
import { Refusal } from '../refusal.ts';
import { type Flags, loadConfig } from '../settings/config.ts';

/**
 * Writes the server's status to stdout.
 *
 * @throws Refusal when the status is not `ok`, or no server answers.
 */
export async function health(flags: Flags): Promise<void> {
  const { listen } = loadConfig({ flags }).config;
  const record = await healthOf(listen);
  if (record === undefined) throw new Refusal(`no server answers on ${formatAddress(listen)}`);
  if (record.status !== 'ok')
    throw new Refusal(`the server on ${formatAddress(listen)} has the status ${record.status}`);
  process.stdout.write('ok\n');
}
