import { once } from 'node:events';
import type { Writable } from 'node:stream';
import type { Destination, ManifestTexts } from './destination.js';

/**
 * A stream, such as standard output, cannot take back what went out. Its reader knows that it has everything by the exit code, and by the manifest, which
 * `keepManifest` is given at the end.
 */
export function streamDestination(
  stream: Writable,
  keepManifest: (manifest: ManifestTexts) => Promise<void> | void,
): Destination {
  return {
    name: undefined,
    // A copy: a stream that is slow keeps what it was given.
    write: async (bytes) => void (stream.write(Buffer.from(bytes)) || (await once(stream, 'drain'))),
    finish: async (manifest) => {
      await new Promise<void>((resolve, reject) => {
        stream.write('', (error) => (error ? reject(error) : resolve()));
      });
      await keepManifest(manifest);
    },
    abort: async () => {},
  };
}
