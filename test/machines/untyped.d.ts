/** The little that the tests use of a package that brings no types. */
declare module 'oidc-provider' {
  import type { RequestListener } from 'node:http';

  export interface Context {
    readonly path: string;
    readonly status: number;
    body: unknown;
    readonly oidc: {
      readonly params?: Readonly<Record<string, string | undefined>>;
      readonly entities: { readonly Account?: { readonly accountId: string } };
    };
  }
  export class Provider {
    constructor(issuer: string, configuration: object);
    readonly AccessToken: { find(token: string): Promise<{ readonly accountId: string } | undefined> };
    use(middleware: (context: Context, next: () => Promise<void>) => Promise<void>): void;
    callback(): RequestListener;
  }
}
