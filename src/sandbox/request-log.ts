/** A request as the sandbox saw it. Nothing secret: no header, no code, no token but page tokens. */
export interface ServedRequest {
  /** Milliseconds since the epoch by the sandbox's clock. */
  readonly at: number;
  readonly method: string;
  readonly path: string;
  /** Of the API: query members and members of the JSON body as they came. Of /auth/token: grant_type alone. Else empty. */
  input: Readonly<Record<string, unknown>>;
  readonly companyId?: string;
  /** undefined while no answer was given; stays so when the connection hangs or is dropped. */
  status?: number;
}

/** Bounds the memory of a sandbox that runs for days; more than any test needs. */
const KEPT = 50_000;

export class RequestLog {
  #entries: ServedRequest[] = [];

  /** Requests in the order of their arrival; with `path`, the requests whose path contains it. */
  all(path = ''): readonly ServedRequest[] {
    return this.#entries.filter((entry) => entry.path.includes(path));
  }

  add(entry: ServedRequest): ServedRequest {
    if (this.#entries.length >= 2 * KEPT) this.#entries = this.#entries.slice(-KEPT);
    this.#entries.push(entry);
    return entry;
  }

  clear(): void {
    this.#entries = [];
  }
}
