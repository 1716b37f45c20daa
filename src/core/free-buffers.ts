import * as threads from 'node:worker_threads';

/** A port that leads nowhere: memory that is transferred there is gone. */
const { port1: nowhere, port2 } = new threads.MessageChannel();
port2.close();

/**
 * Whether Node keeps the memory for itself, as it does its pool of small buffers. Node 20 has no such function, and leaves such memory where
 * it is when it is transferred; later versions throw. How large the pool is says nothing: 8 KB in Node 22, in 24 as much as a socket reads.
 */
const isKeptByNode: (memory: ArrayBuffer) => boolean =
  (threads as { isMarkedAsUntransferable?: (object: object) => boolean }).isMarkedAsUntransferable ?? (() => false);

/**
 * Gives the memory of buffers back at once. From then on the buffers are empty, and so is every other view of their memory. The garbage
 * collector counts objects rather than their memory: read responses would pile up, and new memory for each costs more than
 * receiving it (docs/internals/memory.md). A buffer that shares its memory with others, as small ones do, is left alone.
 */
export function freeBuffers(views: readonly (Buffer | Uint32Array)[]): void {
  freeMemory(views.filter(({ buffer, byteLength }) => byteLength === buffer.byteLength).map(({ buffer }) => buffer));
}

/** Gives memory back that only the caller uses, however little of it a buffer shows. Node's pool stays. */
export function freeMemory(memory: readonly ArrayBufferLike[]): void {
  const freed = new Set(
    memory.filter((each): each is ArrayBuffer => each instanceof ArrayBuffer && each.byteLength > 0 && !isKeptByNode(each)),
  );
  if (freed.size > 0) nowhere.postMessage(undefined, [...freed]);
}
