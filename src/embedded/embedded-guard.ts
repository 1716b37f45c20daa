import { spawn } from 'node:child_process';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { type Account, SERVER_ENVIRONMENT } from './embedded-account.js';

/**
 * Keeps the server exactly as long as anybody needs it. The guard is the server's parent: a few lines of shell, so that it
 * weighs nothing and does not die of a `killall node`. It reads a named pipe that every Muster of this home holds open for
 * writing. The kernel counts those for us: when the last one stops, or crashes, or is killed by -9, the guard's read ends,
 * and it stops the server: fast shutdown first, then immediate, then kill.
 * When the server ends by itself, so does its guard; once the read has ended, the watching half sees to the end alone (trap).
 * It leads a session of its own, so that Ctrl-C, which reaches the whole process group, reaches neither it nor the server.
 */
const GUARD = `
exec 3<&0 </dev/null
"$@" 3<&- &
server=$!
{
  while read -r _; do :; done <&3
  exec 3<&-
  trap '' TERM
  for signal in INT QUIT KILL; do
    kill -$signal $server || exit
    tries=0
    while [ $tries -lt 160 ]; do
      kill -0 $server || exit
      sleep 0.05
      tries=$((tries + 1))
    done
  done
} 2>/dev/null &
watch=$!
exec 3<&-
wait $server
status=$?
kill $watch 2>/dev/null
wait $watch
exit $status
`;

/** A file descriptor that keeps the server alive until it is closed, at the latest by the end of this process. */
export type Hold = number;

/** Joins those who hold the server; undefined when no guard reads the pipe, which means that none will end the server either. */
export function joinHolders(pipe: string): Hold | undefined {
  try {
    return openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENXIO') return undefined;
    throw error;
  }
}

/** Whether a guard reads the pipe still: it might have seen its last holder go just before we joined. */
export function isGuarded(hold: Hold): boolean {
  try {
    writeSync(hold, '\n');
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EAGAIN'; // the pipe is full, so somebody reads it
  }
}

/** Whether any process holds the server. */
export function isHeld(pipe: string): boolean {
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const byte = Buffer.alloc(1);
    while (readSync(reader, byte, 0, 1, null) > 0); // 0 = the end: no writer
    return false;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return true; // a writer, and nothing written
    throw error;
  } finally {
    closeSync(reader);
  }
}

export interface Guard {
  readonly hold: Hold;
  /** Resolves when the server has ended, and the guard with it. Only who waits is kept from ending by it. */
  exited(): Promise<void>;
}

/** Starts a server under a guard of its own, and holds it. Output goes to the file descriptor `log`. */
export function startGuarded(command: readonly string[], pipe: string, log: number, { prefix, ids }: Account): Guard {
  // Opening a pipe waits for its other end, except for both ends at once.
  const both = openSync(pipe, constants.O_RDWR);
  const reader = openSync(pipe, constants.O_RDONLY);
  const hold = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
  try {
    const [file = '', ...args] = [...prefix, '/bin/sh', '-c', GUARD, 'muster-database-guard', ...command];
    const child = spawn(file, args, { ...ids, cwd: '/', env: SERVER_ENVIRONMENT, detached: true, stdio: [reader, log, log] });
    child.unref();
    const exited = new Promise<void>((resolve) => {
      child.on('error', () => resolve());
      child.on('exit', () => resolve());
    });
    return {
      hold,
      exited: () => {
        child.ref();
        return exited;
      },
    };
  } finally {
    closeSync(reader);
    closeSync(both);
  }
}
