/** How a walk of a list came to rest: `unavailable` where the company does not have the list, as the service says. */
export type WalkOver = 'finished' | 'yielded' | { readonly kind: 'unavailable'; readonly serviceSays: string | undefined };
