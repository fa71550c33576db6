# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""nginx on the backends of a lab: each answers with its name."""

from lab import run

CONFIG = """
pid {dir}/nginx.pid;
error_log {dir}/error.log;
worker_processes 1;
events {{ worker_connections 4096; }}
http {{
	access_log off;
	client_body_temp_path {dir}/body;
	proxy_temp_path {dir}/proxy;
	fastcgi_temp_path {dir}/fastcgi;
	uwsgi_temp_path {dir}/uwsgi;
	scgi_temp_path {dir}/scgi;
	default_type text/plain;
	client_max_body_size 64m;
	server {{
		listen 80 backlog=4096;
		listen [::]:80 backlog=4096;
		location / {{ return 200 "{name}\\n"; }}
		location /files/ {{ alias {dir}/files/; }}
	}}
}}
"""


def start_http(lab, names=None):
    """Start nginx on nodes; it dies with the lab.  names: {node: its answer}; without it all backends, by node."""
    for node, name in (names or {node: node for node in lab.backends}).items():
        home = lab.dir / node
        (home / "files").mkdir(parents=True, exist_ok=True)
        config = home / "nginx.conf"
        config.write_text(CONFIG.format(dir=home, name=name))
        # -e: without it nginx first opens the system's error log.
        run(lab.argv(node, ["nginx", "-e", home / "error.log", "-p", home, "-c", config]))
