# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Certificates for servers of tests, by openssl: NAME.pem and NAME.key in a folder; ca.pem is their authority."""

import subprocess

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def openssl(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)


def make_authority(folder, name="ca"):
    openssl(folder, "req", "-x509", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "9", "-subj",
            f"/CN={name}")


def make_self_signed(folder, name, host):
    openssl(folder, "req", "-x509", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "9", "-subj",
            f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}")


def make_certificate(folder, name, alternatives, days=9, extensions=""):
    """alternatives: such as DNS:www.example.com,IP:192.0.2.1; days: -1 expired yesterday."""
    (folder / f"{name}.ext").write_text(f"subjectAltName={alternatives}\n{extensions}")
    openssl(folder, "req", "-new", *KEY, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-days", str(days),
            "-extfile", f"{name}.ext", "-out", f"{name}.pem")
