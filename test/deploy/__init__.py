# SPDX-License-Identifier: Apache-2.0
"""How gpusonde is deployed: the chart, the manifests that are made of it, packages and the image.

    gotemplate   as much of Go's templates as the chart uses
    chart        the chart: its values, what it renders, and the manifests in deploy/kubernetes
    manifests    tests of both
    rules        tests of deploy/prometheus
    grafana      tests of deploy/grafana
    container_image, debian_packages, rpm_packages
"""
