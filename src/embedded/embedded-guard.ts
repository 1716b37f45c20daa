import { spawn } from 'node:child_process';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { type Account, SERVER_ENVIRONMENT } from './embedded-account.js';

/**
 * The guard keeps the server exactly as long as a Muster of this home uses it. It is the server's parent: a few lines of shell, so that it
 * weighs nothing and does not die of a `killall node`. It reads a named pipe that every user of the server keeps open for writing. The
 * kernel counts the users: when the last one stops, or crashes, or is killed by -9, the guard's read ends, and the guard stops the
 * server: fast shutdown first, then immediate, then kill.
 * When the server ends by itself, so does its guard. Once the read has ended, the watching half sees to the end alone (trap).
 * The guard leads a session of its own: Ctrl-C, which reaches the whole process group, reaches neither the guard nor the server.
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

/** The writing end of the pipe, a file descriptor: it keeps the server alive until it is closed, at the latest by the end of this process. */
export type PipeEnd = number;

/** Joins the users of the server. Undefined when no guard reads the pipe, and so none will end the server either. */
export function joinUsers(pipe: string): PipeEnd | undefined {
  try {
    return openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENXIO') return undefined;
    throw error;
  }
}

/** Whether a guard still reads the pipe: it may have seen its last user go just before this process joined. */
export function isGuarded(pipeEnd: PipeEnd): boolean {
  try {
    writeSync(pipeEnd, '\n');
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EAGAIN'; // a full pipe has a reader
  }
}

/** Whether any process uses the server. */
export function isInUse(pipe: string): boolean {
  const reader = openSync(pipe, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const byte = Buffer.alloc(1);
    while (readSync(reader, byte, 0, 1, null) > 0); // 0 is the end, which is read when there is no writer
    return false;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return true; // there is a writer that wrote nothing
    throw error;
  } finally {
    closeSync(reader);
  }
}

export type Guard = ReturnType<typeof startGuarded>;

/** Starts a server under a guard of its own, with this process as its first user. Output goes to the file descriptor `log`. */
export function startGuarded(command: readonly string[], pipe: string, log: number, { prefix, ids }: Account) {
  // Opening one end of a pipe waits for the other end; opening both at once does not wait.
  const both = openSync(pipe, constants.O_RDWR);
  const reader = openSync(pipe, constants.O_RDONLY);
  const pipeEnd = openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
  try {
    const [file = '', ...args] = [...prefix, '/bin/sh', '-c', GUARD, 'muster-database-guard', ...command];
    const child = spawn(file, args, { ...ids, cwd: '/', env: SERVER_ENVIRONMENT, detached: true, stdio: [reader, log, log] });
    child.unref();
    const exited = new Promise<void>((resolve) => {
      child.on('error', () => resolve());
      child.on('exit', () => resolve());
    });
    return {
      pipeEnd,
      /** Resolves when the server has ended, and the guard with it. The guard keeps this process from ending only after this call. */
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
