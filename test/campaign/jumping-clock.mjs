// Preloaded into a process of Muster. Its wall clock goes ten minutes ahead at SIGUSR2 and ten minutes back at SIGWINCH; timers and the monotonic clock go
// on as they did, as on a machine whose clock is set.
const JUMP_MS = 600_000;
const RealDate = Date;
let ahead = 0;

const now = () => RealDate.now() + ahead;
globalThis.Date = new Proxy(RealDate, {
  construct: (target, given, made) => Reflect.construct(target, given.length === 0 ? [now()] : given, made),
  get: (target, name) => (name === 'now' ? now : Reflect.get(target, name)),
});
RealDate.prototype.constructor = Date;

const jump = (ms) => () => {
  ahead += ms;
  process.stderr.write(`the clock is ${ahead / 60_000} min ahead\n`);
};
process.on('SIGUSR2', jump(JUMP_MS));
process.on('SIGWINCH', jump(-JUMP_MS));
