/** The little that the tests use of packages that bring no types, or are not there where the types are checked. */
declare module 'express' {
  import type { Server } from 'node:http';

  export interface Express {
    use(...handlers: unknown[]): void;
    get(
      path: string,
      handler: (request: { params: Record<string, string> }, response: { json(value: object): void }) => void,
    ): void;
    listen(port: number, host: string): Server;
  }
  export default function express(): Express;
}

declare module 'json-server' {
  import type { Express } from 'express';

  const jsonServer: {
    create(): Express;
    defaults(options: { logger: boolean; readOnly: boolean }): unknown[];
    router(database: Readonly<Record<string, readonly object[]>>): unknown;
  };
  export default jsonServer;
}

declare module '@sap/cds' {
  import type { Express } from 'express';

  /** A list request as the framework has read it: `rows` and `offset` come from $top, $skip, $skiptoken and the limit of the service. */
  export interface ReadRequest {
    readonly query: {
      readonly SELECT: {
        readonly limit?: { readonly rows?: { readonly val: number }; readonly offset?: { readonly val: number } };
        readonly count?: boolean;
      };
    };
  }
  interface Service {
    on(event: 'READ', entity: string, handler: (request: ReadRequest) => unknown): void;
  }
  const cds: {
    model: unknown;
    readonly env: { readonly requires: Record<string, unknown> };
    readonly middlewares: { readonly before: readonly unknown[] };
    log(name: string): { info(...texts: unknown[]): void };
    compile(definitions: string): object;
    linked(model: object): object;
    serve(service: string): {
      from(model: object): { in(app: Express): { with(implementation: (service: Service) => void): Promise<void> } };
    };
  };
  export default cds;
}

declare module '@redocly/openapi-core' {
  interface Problem {
    readonly ruleId: string;
    readonly message: string;
    readonly location: readonly { readonly pointer?: string }[];
  }
  export function createConfig(config: { extends: string[] }): Promise<object>;
  export function lint(options: { ref: string; config: object }): Promise<Problem[]>;
}

declare module 'openapi-typescript' {
  export default function openapiTS(document: object): Promise<object[]>;
  export function astToString(ast: object[]): string;
}
