import { MessageChannel } from 'node:worker_threads';

/** A port that leads nowhere: what is sent there with its memory is gone. */
const { port1: nowhere, port2 } = new MessageChannel();
port2.close();

/**
 * Gives the memory of a buffer back at once. From then on it is empty, and so is every other view of its memory. The garbage
 * collector counts objects rather than what they hold: it lets a hundred megabytes of read responses pile up, and new memory for
 * each costs more than to receive it. Buffers that share their memory with others, as small ones do, are left alone.
 */
export function freeBuffer({ buffer, byteLength }: Buffer | Uint32Array): void {
  if (byteLength > 0 && byteLength === buffer.byteLength && buffer instanceof ArrayBuffer)
    nowhere.postMessage(undefined, [buffer]);
}
