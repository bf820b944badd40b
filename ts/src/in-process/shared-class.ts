/** Error classes of which a process may have two copies: one for `import`, and one for `require`. */

/**
 * Makes `instanceof` true for the instances of every copy of a class: programs tell errors apart by their class, and
 * one part of a program may import what another requires.
 *
 * @param name - The name of the class, the same in each copy.
 */
export function shareClass(kind: { readonly prototype: Error }, name: string): void {
  const brand = Symbol.for(`@svc/server ${name}`);
  Object.defineProperty(kind.prototype, brand, { value: true });
  Object.defineProperty(kind, Symbol.hasInstance, {
    value(this: new () => unknown, value: unknown): boolean {
      // A subclass inherits this function, and has instances of its own.
      if (this !== kind) return Function.prototype[Symbol.hasInstance].call(this, value);
      return typeof value === 'object' && value !== null && brand in value;
    },
  });
}
