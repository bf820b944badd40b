/** The program that is the server beside a gate: `svc serve` that ends in order when the gate lets go of it or is gone. */
import { main } from '../cli.ts';

function end(): void {
  // Before there is anything to end in order nobody listens to the signal.
  if (!process.emit('SIGTERM', 'SIGTERM')) process.exit(0);
}

process.once('disconnect', end);
// The gate may be gone before this line is reached.
if (!process.connected) end();

await main(['serve', ...process.argv.slice(2)]);
