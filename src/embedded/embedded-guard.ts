import { spawn } from 'node:child_process';
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs';
import { type Account, SERVER_ENVIRONMENT } from './embedded-account.js';

/**
 * The guard keeps the server running exactly as long as a Muster process of this home uses it. It is the server's parent: a few lines of shell,
 * so that it needs little memory and survives a `killall node`. It reads a named pipe that every user of the server keeps open for writing. The
 * kernel counts the users: when the last one stops, crashes or is killed by -9, the guard's read ends, and the guard stops the
 * server: fast shutdown first, then immediate, then kill.
 * When the server ends by itself, the guard ends, too. Once the read has ended, only the watching half completes the shutdown (trap).
 * The guard leads its own session, so that Ctrl-C, which reaches the whole process group, reaches neither the guard nor the server.
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

/** File descriptor of the writing end of the pipe. It keeps the server alive until it is closed, at the latest when this process ends. */
export type PipeEnd = number;

/** Joins the users of the server. Undefined if no guard reads the pipe. */
export function joinUsers(pipe: string): PipeEnd | undefined {
  try {
    return openSync(pipe, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENXIO') return undefined;
    throw error;
  }
}

/** Whether a guard still reads the pipe. Its last user may have left just before this process joined. */
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
    while (readSync(reader, byte, 0, 1, null) > 0); // 0 means that there is no writer
    return false;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return true; // there is a writer
    throw error;
  } finally {
    closeSync(reader);
  }
}

export type Guard = ReturnType<typeof startGuarded>;

/** Starts a server with its own guard, and with this process as its first user. Output goes to the file descriptor `log`. */
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
      /** Resolves when the server and its guard have ended. Only after this call does the guard keep this process from ending. */
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
