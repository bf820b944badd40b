/**
 * The program of the server beside a gate: `svc serve`, which shuts down in order when the gate disconnects or is gone.
 */
import { main } from '../cli.ts';

function end(): void {
  // Until there is anything to shut down in order, the signal has no listener.
  if (!process.emit('SIGTERM', 'SIGTERM')) process.exit(0);
}

process.once('disconnect', end);
// The gate may have ended before this line is reached.
if (!process.connected) end();

await main(['serve', ...process.argv.slice(2)]);
