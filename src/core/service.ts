/**
 * The one contract of everything that is started and stopped.
 * `start` resolves when the service does its work; `stop` resolves when it has let go of every resource.
 * `stop` may be called twice, and before `start` has finished.
 */
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}
