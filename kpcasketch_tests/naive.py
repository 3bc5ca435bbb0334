# SPDX-License-Identifier: BSD-3-Clause
"""The textbook line of each function, in plain NumPy and float64: what the compiled functions are compared with."""

import itertools

import numpy as np


def wide(X):
    """X in float64, or as it is where it is wider: extended precision has room for any power of a float64."""
    return np.asarray(X, np.result_type(X, float))


def squared_distances(X, Y):
    return ((wide(X)[:, None, :] - wide(Y)[None, :, :]) ** 2).sum(-1)


def inner_products(X, Y):
    return wide(X) @ wide(Y).T


def gaussian(X, Y, sigma):
    return np.exp(-squared_distances(X, Y) / (2 * sigma**2))


def laplacian(X, Y, sigma):
    return np.exp(-np.sqrt(squared_distances(X, Y)) / sigma)


def matern(X, Y, nu, sigma):
    a = np.sqrt(2 * nu) * np.sqrt(squared_distances(X, Y)) / sigma
    return {0.5: 1, 1.5: 1 + a, 2.5: 1 + a + a**2 / 3}[nu] * np.exp(-a)


def rational_quadratic(X, Y, alpha, sigma):
    return (1 + squared_distances(X, Y) / (2 * alpha * sigma**2)) ** -alpha


def cauchy(X, Y, sigma):
    return 1 / (1 + squared_distances(X, Y) / sigma**2)


def polynomial(X, Y, degree, gamma, coef0):
    return (gamma * inner_products(X, Y) + coef0) ** degree


def linear(X, Y):
    return inner_products(X, Y)


def rounded(coef, s, uniform):
    """Rounded columns, given the uniform number of each row."""
    norms = np.linalg.norm(coef, axis=0)
    unit = coef / norms
    up = np.sign(unit) / s * (uniform[:, None] < s * np.abs(unit))
    return norms * np.where(np.abs(unit) >= 1 / s, unit, up)


def gradient(features, X, h=1e-5):
    """(n, k, d) central differences of a function (n, d) -> (n, k)."""
    steps = h * np.eye(X.shape[1])
    return np.stack([(features(X + e) - features(X - e)) / (2 * h) for e in steps], -1)


def gaussian_gradient(X, Z, coef, sigma):
    """d/dx sum_i coef_ij exp(-|x - z_i|^2 / (2 sigma^2)) = sum_i coef_ij k(x, z_i) (z_i - x) / sigma^2."""
    return np.einsum("ij,qi,qit->qjt", coef, gaussian(X, Z, sigma), Z - X[:, None]) / sigma**2


def learned_metric(X, Y, sigma, lam, rounds, held):
    """Recursive feature machine: exact ridge with exp(-|M^(1/2) (x - z)|^2 / (2 sigma^2)) and an intercept, then M <-
    its average outer product of gradients, with trace d. Held-out errors, and the metrics that they belong to."""
    Y = (Y - Y.mean(0)) / Y.std(0)
    kept = np.setdiff1d(np.arange(len(X)), held)
    M, errors, metrics = np.eye(X.shape[1]), [], []
    for _ in range(rounds + 1):
        values, V = np.linalg.eigh(M)
        root = V * np.sqrt(np.maximum(values, 0)) @ V.T
        P = X @ root
        K = gaussian(P[kept], P[kept], sigma)
        ones = np.ones((kept.size, 1))
        A = np.block([[K + lam * np.eye(kept.size), ones], [ones.T, 0.0]])
        solved = np.linalg.solve(A, np.vstack([Y[kept], np.zeros(Y.shape[1])]))
        coef, intercept = solved[:-1], solved[-1]
        predicted = gaussian(P[held], P[kept], sigma) @ coef + intercept
        errors.append(np.mean((predicted - Y[held]) ** 2))
        metrics.append(M)
        G = gaussian_gradient(P[kept], P[kept], coef, sigma) @ root
        M = np.einsum("qjs,qjt->st", G, G)
        M *= len(M) / np.trace(M)
    return np.array(errors), metrics


def centered(K):
    n = len(K)
    H = np.eye(n) - np.ones((n, n)) / n
    return H @ K @ H


def csr_to_dense(data, indices, indptr):
    n = len(indptr) - 1
    out = np.zeros((n, n))
    for i in range(n):
        for p in range(indptr[i], indptr[i + 1]):
            out[i, indices[p]] += data[p]
    return out


def bits_to_dense(words, scale, n):
    out = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            out[i, j] = scale if (int(words[i // 32, j]) >> (i % 32)) & 1 else -scale
    return out


def eigenpairs(A, k):
    """k largest eigenvalues, descending, and their vectors with the entry of largest size positive."""
    values, vectors = np.linalg.eigh(A)
    values, vectors = values[::-1][:k], vectors[:, ::-1][:, :k]
    largest = np.abs(vectors).argmax(0)
    return values, vectors * np.sign(vectors[largest, np.arange(k)])


def features(K_new, K, k):
    """Uncentred kernel PCA features of new points from their kernel values against the training points."""
    values, vectors = eigenpairs(K, k)
    return K_new @ (vectors / np.sqrt(values))


def centered_features(K_new, K, k):
    values, vectors = eigenpairs(centered(K), k)
    K_new = K_new - K_new.mean(1, keepdims=True) - K.mean(0) + K.mean()
    return K_new @ (vectors / np.sqrt(values))


def orthonormal_columns(A):
    """Gram and Schmidt's columns in extended precision, 0 at an angle below 1e-5 to the columns before."""
    Q = np.zeros(A.shape, np.longdouble)
    for j in range(A.shape[1]):
        q = A[:, j].astype(np.longdouble)
        before = np.sqrt(q @ q)
        for _ in range(2):
            q = q - Q @ (Q.T @ q)
        size = np.sqrt(q @ q)
        if size > 1e-5 * before:
            Q[:, j] = q / size
    return Q


def principal_angles(U, V):
    U, V = np.linalg.qr(U)[0], np.linalg.qr(V)[0]
    cosines = np.linalg.svd(U.T @ V, compute_uv=False)
    return np.sort(np.arccos(np.clip(cosines, -1, 1)))[::-1]


def sketch_error(K, values, vectors, k):
    """Eigenpairs of K to second order from orthonormal vectors, against the first k of these."""
    mu, Y = np.linalg.eigh(vectors.T @ K @ vectors)
    mu, Y = mu[::-1], Y[:, ::-1]
    inside = vectors @ Y
    outside = K @ inside - inside * mu
    gaps = mu - 0.5 * max(mu[-1], 0.0)
    exact = mu + (outside**2).sum(0) / gaps
    return values[:k] - exact[:k], principal_angles(
        vectors[:, :k], (inside + outside / gaps)[:, :k]
    )


def effective_dimension(K, lam):
    return np.trace(K @ np.linalg.inv(K + lam * np.eye(len(K))))


def median_distance(X):
    n = len(X)
    return np.median([np.sqrt(((X[i] - X[j]) ** 2).sum()) for i in range(n) for j in range(i)])


def splitmix64(seed, count):
    """The first outputs of SplitMix64 in Python integers."""
    mask, out, state = 2**64 - 1, [], seed
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        out.append(z ^ (z >> 31))
    return out


def ridge_leverage_scores(K, lam):
    return np.diag(K @ np.linalg.inv(K + lam * np.eye(len(K))))


def approximate_ridge_leverage_scores(K, indices, weights, lam):
    """Lemma 6 of RLS, before the cap."""
    KS = K[:, indices] * weights
    inner = np.linalg.inv(np.transpose(weights * KS[indices].T) + lam * np.eye(len(indices)))
    return (np.diag(K) - ((KS @ inner) * KS).sum(1)) / lam


def recursive_rls_fixed(K, s, delta, depth, uniform, c=640.0, level=0):
    """Algorithm 3 of RLS: of each level, the lowest first, its points, those kept, their probabilities, and the ridge.

    depth: after how many halvings each point is left; uniform(level): a uniform number for each point.
    """
    rows = np.flatnonzero(depth >= level)
    if rows.size <= s:
        return [(rows, rows, np.ones(rows.size), None)]
    found = recursive_rls_fixed(K, s, delta / 3, depth, uniform, c, level + 1)
    _, sample, chances, _ = found[-1]
    k = max([1] + [k for k in range(1, s + 1) if c * k * np.log(2 * k / delta) <= s])
    weights = 1 / np.sqrt(chances)
    lam = np.linalg.eigvalsh(weights[:, None] * K[np.ix_(sample, sample)] * weights)[:-k].sum() / k
    scores = 5 * approximate_ridge_leverage_scores(
        K[np.ix_(rows, rows)], np.searchsorted(rows, sample), weights, lam
    )
    p = np.minimum(1, 16 * np.minimum(1, scores) * np.log(2 * k / delta))
    kept = uniform(level)[rows] < p
    return [*found, (rows, rows[kept], p[kept], lam)]


def nystrom(K, indices):
    C = K[:, indices]
    return C @ np.linalg.pinv(K[np.ix_(indices, indices)], rcond=1e-13, hermitian=True) @ C.T


def unexplained(K, indices, shift=0.0):
    """diag(K - C (A + shift I)^-1 C^T) for the columns C = K[:, indices] and their rows A, by elimination in the
    precision of K."""
    C, A = (
        K[:, indices].copy(),
        K[np.ix_(indices, indices)] + np.diag(np.broadcast_to(shift, len(indices))),
    )
    rest = np.diag(K).copy()
    for j in range(len(indices)):
        rest = rest - C[:, j] ** 2 / A[j, j]
        factors = A[j, j + 1 :] / A[j, j]
        C[:, j + 1 :] -= np.outer(C[:, j], factors)
        A[j + 1 :, j + 1 :] -= np.outer(A[j + 1 :, j], factors)
    return rest


def kernel_ridge(K, y, lam):
    return K @ np.linalg.solve(K + lam * np.eye(len(K)), y)


def left_out(K_ZX, K_Z, Y, lam):
    """Sum of squared errors of regression over landmarks Z, with an intercept, at each point, by n models without the
    point."""
    total = 0.0
    rows = np.vstack([K_ZX, np.ones(len(Y))])
    ridge = np.zeros((len(rows), len(rows)))
    ridge[:-1, :-1] = lam * K_Z
    for i in range(len(Y)):
        kept = np.arange(len(Y)) != i
        A = rows[:, kept] @ rows[:, kept].T + ridge
        total += ((rows[:, i] @ np.linalg.solve(A, rows[:, kept] @ Y[kept]) - Y[i]) ** 2).sum()
    return total


def projection_cost(K, V):
    Q = np.linalg.qr(V)[0]
    P = Q @ Q.T
    return np.trace(K - P @ K @ P)


def nuclear_norm(A):
    return np.abs(np.linalg.eigvalsh(A)).sum()


def correlations(F, G, lam_x, lam_y, squared):
    """Canonical correlations of K_x = F F^T and K_y = G G^T: singular values of P_x P_y, or of their square roots."""
    roots = []
    for factor, lam in ((F, lam_x), (G, lam_y)):
        vectors, values, _ = np.linalg.svd(factor, full_matrices=False)
        share = values**2 / (values**2 + lam)
        roots.append(vectors * (share if squared else np.sqrt(share)))
    return np.linalg.svd(roots[0].T @ roots[1], compute_uv=False)


def pivoted_cholesky(K, s):
    """Pivots of greedy pivoted Cholesky."""
    rest, pivots = K.copy(), []
    for _ in range(s):
        i = int(np.argmax(np.diag(rest)))
        pivots.append(i)
        rest = rest - np.outer(rest[:, i], rest[i]) / rest[i, i]
    return pivots


def city_block(X, Y, sigma):
    return np.exp(-np.abs(X[:, None] - Y).sum(2) / sigma)


def frequent_directions(Z, ell, half=True, share=1.0):
    """(B, sum of what was taken off): a row at a time, and a singular value decomposition whenever no row is free."""
    room, j, number = (
        (ell + max(1, ell // 4), (ell + 1) // 2, (ell + 1) // 2)
        if half
        else (2 * ell, ell, ell + 1)
    )
    spared, B, used, shrunk = min(int((1 - share) * j), j - 1), np.zeros((room, Z.shape[1])), 0, 0.0

    def decomposed(B):
        _, lengths, V = np.linalg.svd(B, full_matrices=False)
        squares, rows = np.zeros(room), np.zeros_like(B)
        squares[: len(lengths)], rows[: len(V)] = lengths**2, V
        return squares, rows

    def shrink(B, number):
        squares, rows = decomposed(B)
        if squares[ell] <= 1e-14 * squares[0]:  # of rank ell
            squares[ell:] = 0
            return (
                np.sqrt(squares)[:, None] * rows,
                0.0,
                np.count_nonzero(squares > 1e-14 * squares[0]),
            )
        kept = np.maximum(squares - squares[number - 1], 0)
        kept[:spared], kept[number - 1 :] = squares[:spared], 0
        return np.sqrt(kept)[:, None] * rows, squares[number - 1], np.count_nonzero(kept)

    for z in Z:
        B[used], used = z, used + 1
        if used == room:
            B, taken, used = shrink(B, number)
            shrunk += taken
    if used > ell:
        B, taken, used = shrink(B, ell + 1)
        shrunk += taken
    squares, rows = decomposed(B)
    return (np.sqrt(squares)[:, None] * rows)[:ell], shrunk


def shadows(X, eps):
    """Algorithm 2 of RSKPCA: (numbers of the centers, labels); squares are added up in the order of the coordinates."""
    X = X.astype(np.float64)
    left, labels, centers = np.arange(len(X)), np.full(len(X), -1), []
    while left.size:
        gaps, total = X[left] - X[left[0]], np.zeros(left.size)
        for t in range(X.shape[1]):
            total = total + gaps[:, t] * gaps[:, t]
        inside = total < eps * eps
        labels[left[inside]] = len(centers)
        centers.append(left[0])
        left = left[~inside]
    return np.array(centers), labels


def quantized(K_C, w):
    """Gram matrix of the points of which w_j (whole numbers) lie at center j, and the center of each."""
    at = np.repeat(np.arange(len(w)), np.asarray(w, int))
    return K_C[np.ix_(at, at)], at


def mmd(K, K_XC, K_C, w):
    n = len(K)
    return np.sqrt(max(0, K.sum() / n**2 - 2 * (K_XC @ w).sum() / n**2 + w @ K_C @ w / n**2))


def herd(K, m):
    """Kernel herding over the points: numbers in the order of choice."""
    means, sums, chosen = K.mean(0), np.zeros(len(K)), []
    for t in range(m):
        score = means - sums / (t + 1)
        score[chosen] = -np.inf
        chosen.append(int(score.argmax()))
        sums = sums + K[chosen[-1]]
    return chosen


def halved(K, coins, log_inverse):
    """KT-SPLIT: whether each point is in the second half. Rows 2p and 2p + 1 are a pair, swapped or not."""
    second, lead, spread = np.zeros(len(K), bool), np.zeros(len(K)), 0.0
    for x in range(0, len(K) - 1, 2):
        y = x + 1
        square = K[x, x] + K[y, y] - 2 * K[x, y]
        limit = max(np.sqrt(2 * spread * square * log_inverse), square)
        swap = False
        if limit > 0:
            spread += max(0, square * (1 + (square - 2 * limit) * spread / limit**2))
            swap = coins[x] < (1 - (lead[x] - lead[y]) / limit) / 2
        second[x], second[y] = swap, not swap
        lead += (K[x] - K[y]) * (1 if swap else -1)
    return second


def swapped(K, rows):
    """KT-SWAP: each of the rows in turn becomes the free row that minimizes the MMD to all."""
    rows = list(rows)
    for t in range(len(rows)):
        others = rows[:t] + rows[t + 1 :]
        score = (2 * K[others].sum(0) + np.diag(K)) / len(rows) - 2 * K.mean(0)
        score[others] = np.inf
        rows[t] = int(score.argmin())
    return rows


def diffusion(K, alpha):
    """Eigenvalues, falling, and right eigenvectors of P = D^-1 K_a, with mean square 1 under the stationary law."""
    q = K.sum(1)
    K_a = K / np.outer(q, q) ** alpha
    D = K_a.sum(1)
    values, U = np.linalg.eigh(K_a / np.sqrt(np.outer(D, D)))
    return values[::-1], (U / np.sqrt(D)[:, None] * np.sqrt(D.sum()))[:, ::-1], D


def feature_blocks(first, m, b):
    """Features first to m - 1 in as few blocks of at most b as can be, of even size."""
    return [
        slice(rows[0], rows[-1] + 1)
        for rows in np.array_split(np.arange(first, m), -(-(m - first) // b))
    ]


def dsgd_step(task, coef, other, phi, psi, block, eta, ridge=0.0, centered=False):
    """Doubly stochastic step, every feature stored: phi (n, m), psi (n, m') of the second view. The mean of the
    features of `block` stands for the kernel.

    Tasks: "kpca", "gha", "ksvd", "kcca", "ksir" (psi of all slices, whole). The coefficients after the step, and W.
    """
    U, V = phi @ coef, psi @ other
    n, canonical, lost = len(U), task in ("kcca", "ksir"), int(centered)
    half = n // 2 if canonical else 0
    first, second = slice(0, half if canonical else n), slice(half, n)

    def centre(part):
        return part - part.mean(0) if centered else part

    U1, V1, U2, V2 = centre(U[first]), centre(V[first]), centre(U[second]), centre(V[second])
    W = (U1.T @ U1 if task in ("kpca", "gha") else U1.T @ V1 + V1.T @ U1) / (len(U1) - lost)
    for_x, for_y = {"kpca": (U2, None), "gha": (U2, None), "ksvd": (V2, U2)}.get(
        task, (V2 - U2 @ W, U2 - V2 @ W)
    )
    loss = eta * (np.triu(W) if task == "gha" else W) * (ridge if canonical else 1.0)
    # indicators have no ridge
    a, b = coef - coef @ loss, other - other @ (0 * loss if task == "ksir" else loss)
    mean = eta / ((block.stop - block.start) * (len(U2) - lost))
    a[block] += mean * phi[second][:, block].T @ for_x
    if task == "ksir":
        b += eta / (len(U2) - lost) * psi[second].T @ for_y
    elif for_y is not None:
        b[block] += mean * psi[second][:, block].T @ for_y
    return a, b, W


def stored_step(alpha, K, rows, eta):
    """Update (2) of DSGD with stored points: functions K alpha, a step on the points `rows`; coefficients after it."""
    U = K[rows] @ alpha
    alpha = alpha - eta * alpha @ (U.T @ U / len(U))
    np.add.at(alpha, rows, eta / len(U) * U)
    return alpha


def novelty_pvalues(residuals, known):
    """Squares that differ by 1e-9 are equal: a point has another rounding error in another batch."""
    return [
        (1 + sum(other**2 >= r**2 - 1e-9 for other in known)) / (1 + len(known)) for r in residuals
    ]


def mmd_pvalue(K, n, groups=None):
    """Share of all divisions into as many groups as the first n points have, and the other groups, whose means in
    feature space are as far apart, or farther. Each point is a group unless `groups` are given."""
    groups = np.arange(len(K)) if groups is None else np.asarray(groups)

    def distance(chosen):
        first = np.isin(groups, chosen)
        w = np.where(first, 1 / first.sum(), -1 / (~first).sum())
        return w @ K @ w

    own = np.unique(groups[:n])
    observed = distance(own) - 1e-12 * np.abs(K).max()
    divisions = itertools.combinations(np.unique(groups), len(own))
    return np.mean([distance(chosen) >= observed for chosen in divisions])
