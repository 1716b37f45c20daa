/** A request as the sandbox saw it. It has no secrets: no header, no code, and no token but page tokens. */
export interface ServedRequest {
  /** Milliseconds since the epoch by the sandbox's clock. */
  readonly at: number;
  readonly method: string;
  readonly path: string;
  /** For the API, the members of the query or JSON body as they came; for /auth/token only grant_type; otherwise empty. */
  input: Readonly<Record<string, unknown>>;
  readonly companyId?: string;
  /** Undefined until a response was sent; it stays undefined if the connection hangs or is dropped. */
  status?: number;
}

/** The most entries, to bound the memory of a sandbox that runs for days; tests need fewer. */
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
